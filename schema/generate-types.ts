import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { migrate, type SqlClient } from './migrate.js';

/**
 * Writes the tables' TypeScript types from the tables themselves: applies the migrations to a schema of its own in a
 * real Postgres, reads the catalogue, drops the schema. `DATABASE_URL=… node dist/schema/generate-types.js [--check]`
 */
export async function generateTypes(client: SqlClient): Promise<string> {
  const schema = `generate_types_${process.pid}`;
  await client.query(`drop schema if exists ${schema} cascade`);
  await migrate(client, schema);
  try {
    const { rows } = await client.query(
      `select table_name, column_name, udt_name, is_nullable, column_default
         from information_schema.columns where table_schema = $1
        order by table_name collate "C", ordinal_position`,
      [schema],
    );
    const keys = await client.query(
      `select k.table_name, k.column_name
         from information_schema.table_constraints c
         join information_schema.key_column_usage k using (constraint_schema, constraint_name)
        where c.constraint_schema = $1 and c.constraint_type = 'PRIMARY KEY'
        order by k.table_name collate "C", k.ordinal_position`,
      [schema],
    );
    const bases = await client.query(
      `select table_name from information_schema.tables where table_schema = $1 and table_type = 'BASE TABLE'`,
      [schema],
    );
    const tables = new Set(bases.rows.map((row) => String(row['table_name'])));
    return render(rows.map(toColumn), keys.rows as unknown as readonly KeyColumn[], tables);
  } finally {
    await client.query(`drop schema ${schema} cascade`);
  }
}

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly generated: boolean;
}
interface KeyColumn {
  readonly table_name: string;
  readonly column_name: string;
}

/** Of the formatter, so that the file is what it would write. */
const LINE_WIDTH = 110;

/** TypeScript types as the connection's parsers give them (schema/connect.ts). */
const TYPES: Readonly<Record<string, string>> = {
  text: 'string',
  uuid: 'string',
  bool: 'boolean',
  int4: 'number',
  int8: 'number',
  float8: 'number',
  numeric: 'string',
  timestamptz: 'string',
  jsonb: 'Json',
  _text: 'string[]',
  _int4: 'number[]',
};

function toColumn(row: Record<string, unknown>): Column {
  const name = String(row['column_name']);
  const type = TYPES[String(row['udt_name'])];
  if (type === undefined) {
    throw new Error(
      `Column ${name} has type ${String(row['udt_name'])}, which generate-types.ts cannot name yet.`,
    );
  }
  return {
    table: String(row['table_name']),
    name,
    type,
    nullable: row['is_nullable'] === 'YES',
    generated: row['column_default'] !== null,
  };
}

/** Views are read only: they are in the types, and not among the tables that rows are written to. */
function render(
  columns: readonly Column[],
  keys: readonly KeyColumn[],
  written: ReadonlySet<string>,
): string {
  const tables = [...new Set(columns.map((column) => column.table))];
  const lines = [
    '// Generated from schema/sql by schema/generate-types.ts; do not edit.',
    "import { type Generated } from 'kysely';",
    '',
    '/** jsonb: whatever the projection wrote there; readers name its shape. */',
    'export type Json = unknown;',
    '',
  ];
  for (const table of tables) {
    lines.push(`export interface ${interfaceName(table)} {`);
    for (const column of columns.filter((c) => c.table === table)) {
      const type = column.nullable && column.type !== 'Json' ? `${column.type} | null` : column.type;
      lines.push(`  ${column.name}: ${column.generated ? `Generated<${type}>` : type};`);
    }
    lines.push('}', '');
  }
  lines.push('export interface DB {');
  for (const table of tables) lines.push(`  ${table}: ${interfaceName(table)};`);
  lines.push('}', '');
  lines.push('/** Every column and the primary key of each table, in order. */', 'export const TABLES = {');
  for (const table of tables.filter((name) => written.has(name))) {
    const names = columns.filter((c) => c.table === table).map((c) => `'${c.name}'`);
    const key = keys.filter((k) => k.table_name === table).map((k) => `'${k.column_name}'`);
    lines.push(`  ${table}: {`, `    key: [${key.join(', ')}],`);
    const inOneLine = `    columns: [${names.join(', ')}],`;
    if (inOneLine.length <= LINE_WIDTH) lines.push(inOneLine);
    else lines.push('    columns: [', ...names.map((name) => `      ${name},`), '    ],');
    lines.push('  },');
  }
  lines.push('} as const;', '');
  return lines.join('\n');
}

const interfaceName = (table: string): string =>
  table
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('') + 'Table';

/** The committed file, from the sources as from `dist`. */
export function typesFile(): string {
  const beside = fileURLToPath(new URL('./db.types.ts', import.meta.url));
  return existsSync(beside) ? beside : fileURLToPath(new URL('../../schema/db.types.ts', import.meta.url));
}

async function main(check: boolean): Promise<void> {
  const connectionString = process.env['DATABASE_URL'];
  if (!connectionString) throw new Error('DATABASE_URL must name a Postgres in which a schema may be made.');
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const text = await generateTypes(client);
    if (!check) {
      writeFileSync(typesFile(), text);
      return;
    }
    if (readFileSync(typesFile(), 'utf8') !== text) {
      throw new Error('schema/db.types.ts is not what schema/sql gives: run schema/generate-types.ts.');
    }
  } finally {
    await client.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.includes('--check')).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
