/** Reads the output of test runners as lines of a report: `is TEST: RESULT`. */

/** Python's unittest with `-v`; the result of a test may be on a later line, after its description or warnings. */
export function unittestReport(text: string, ignored: RegExp = /$^/): string {
  const lines: string[] = [];
  let current: string | null = null;
  for (const line of text.split('\n')) {
    const start = /^(test\w*) \((\S+)\)/.exec(line);
    if (start !== null) current = start[2]?.endsWith(start[1] ?? '') === true ? start[2] : `${start[2]}.${start[1]}`;
    const result = /(?:^|\.\.\. )(ok|FAIL|ERROR|skipped\b.*|expected failure)$/.exec(line);
    if (current === null || result === null) continue;
    if (!ignored.test(current))
      lines.push(`is ${current}: ${result[1]?.startsWith('skipped') === true ? 'skipped' : result[1]}`);
    current = null;
  }
  return lines.join('\n');
}

/** Rust's test harness. */
export function cargoTestReport(text: string, ignored: RegExp = /$^/): string {
  return [...text.matchAll(/^test (\S+) \.\.\. (ok|FAILED|ignored)/gm)]
    .filter(([, test = '']) => !ignored.test(test))
    .map(([, test, result]) => `is ${test}: ${result}`)
    .join('\n');
}
