/** Label with the group of a workload; types are in `<label>/cpu-type` and so on. */
export const GROUP_LABEL = 'biz.group.resource.quota';
