// What can be broken in a TypeScript source: single small changes, each of which a test should notice.
import ts from 'typescript';

const { SyntaxKind } = ts;

/** Operators, and what each becomes. Additions are left alone: most of them join texts. */
const OPERATORS = new Map([
  [SyntaxKind.LessThanToken, ['<=', '>=']],
  [SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [SyntaxKind.AmpersandAmpersandToken, ['||']],
  [SyntaxKind.BarBarToken, ['&&']],
  [SyntaxKind.MinusToken, ['+']],
  [SyntaxKind.AsteriskToken, ['/']],
  [SyntaxKind.SlashToken, ['*']],
  [SyntaxKind.PlusEqualsToken, ['-=']],
  [SyntaxKind.MinusEqualsToken, ['+=']],
]);

/** Names of methods, and what each becomes. */
const METHODS = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
]);

/** What only tells people something, such as a line of a log, is no behaviour that a test must know. */
const TELLS = /^(?:this\.)?#?\w*(?:log|logger|note|console)\b/u;

/** The changes that a source allows: where the text begins and ends that `text` replaces, and the line, from 1. */
export function mutationsOf(path, source) {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
  const found = [];
  const add = (node, text) => {
    const start = node.getStart(file);
    const line = file.getLineAndCharacterOfPosition(start).line + 1;
    found.push({ path, line, start, end: node.getEnd(), before: node.getText(file), text });
  };
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isImportDeclaration(node)) return;
    for (const text of replacements(node, file)) add(node, text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The source with one change. */
export const mutated = (source, { start, end, text }) => source.slice(0, start) + text + source.slice(end);

function replacements(node, file) {
  if (OPERATORS.has(node.kind) && ts.isBinaryExpression(node.parent)) return OPERATORS.get(node.kind);
  if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
    return [node.operand.getText(file)];
  if (ts.isNumericLiteral(node)) return isIndexOfEnum(node) ? [] : [`(${node.text} + 1)`];
  if (node.kind === SyntaxKind.TrueKeyword) return ['false'];
  if (node.kind === SyntaxKind.FalseKeyword) return ['true'];
  if (ts.isPropertyAccessExpression(node.parent ?? node) && node === node.parent.name && METHODS.has(node.text))
    return ts.isCallExpression(node.parent.parent) ? [METHODS.get(node.text)] : [];
  if (ts.isIfStatement(node.parent ?? node) && node === node.parent.expression) return ['true', 'false'];
  if (ts.isConditionalExpression(node.parent ?? node) && node === node.parent.condition) return ['true', 'false'];
  if (ts.isExpressionStatement(node)) return isNeeded(node, file) ? [] : [';'];
  if (ts.isContinueStatement(node) || ts.isBreakStatement(node)) return [';'];
  return [];
}

const isIndexOfEnum = (node) => ts.isPropertyAssignment(node.parent) && node.parent.name === node;

/** What cannot be dropped, or changes nothing that a program sees. */
function isNeeded(statement, file) {
  const text = statement.expression.getText(file);
  return text.startsWith('super(') || TELLS.test(text);
}
