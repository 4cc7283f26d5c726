/** The command cannot run with this configuration: the message is one line for the operator, the exit code is 2. */
export class StartupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartupError';
  }
}
