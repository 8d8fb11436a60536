import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

export interface EventShape {
  readonly type: string;
  readonly fields: readonly { readonly name: string; readonly optional: boolean }[];
}

/** Every `EventOf<'Type', Data>` of the sources with the fields of its data, those of a named interface included. */
export function eventShapes(folder: string): readonly EventShape[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) =>
      ts.createSourceFile(name, readFileSync(join(folder, name), 'utf8'), ts.ScriptTarget.Latest, true),
    );
  const interfaces = new Map<string, ts.InterfaceDeclaration>();
  for (const file of files) {
    file.forEachChild((node) => {
      if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, node);
    });
  }
  const shapes: EventShape[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeReferenceNode(node) && node.typeName.getText() === 'EventOf') {
      const [type, data] = node.typeArguments ?? [];
      if (type && data && ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal)) {
        shapes.push({ type: type.literal.text, fields: membersOf(data, interfaces).map(fieldOf) });
      }
    }
    node.forEachChild(visit);
  };
  for (const file of files) visit(file);
  return shapes;
}

function membersOf(
  node: ts.Node,
  interfaces: ReadonlyMap<string, ts.InterfaceDeclaration>,
): readonly ts.TypeElement[] {
  if (ts.isTypeLiteralNode(node)) return node.members;
  const name = ts.isTypeReferenceNode(node)
    ? node.typeName.getText()
    : ts.isExpressionWithTypeArguments(node)
      ? node.expression.getText()
      : '';
  const found = interfaces.get(name);
  if (!found) throw new Error(`The data type ${node.getText()} is not declared beside the events.`);
  const bases = (found.heritageClauses ?? []).flatMap((clause) => clause.types);
  return [...found.members, ...bases.flatMap((base) => membersOf(base, interfaces))];
}

const fieldOf = (member: ts.TypeElement) => ({
  name: member.name?.getText() ?? '',
  optional: member.questionToken !== undefined,
});
