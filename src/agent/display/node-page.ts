import { packageFile } from '../../host/package-files.js';

/** Folder of the node's page; it uses the shared parts of src/page. */
export const NODE_PAGE = packageFile('src/agent/display/page/');
