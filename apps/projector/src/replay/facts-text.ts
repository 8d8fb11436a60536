import type { DerivedFact, FactsReport } from '#domain/facts/derived-facts.js';

const SHOWN = 100;

const figure = (value: number): string =>
  Number.isInteger(value) ? value.toLocaleString('en') : value.toPrecision(4);

function factText({ about, figures, from }: DerivedFact): string {
  const what = Object.values(about).join('  ');
  const values = Object.entries(figures).map(([name, value]) => `${name} ${figure(value)}`);
  return `  ${what}: ${values.join(', ')} (from ${from})`;
}

/** The facts by rule, and what decisions used otherwise. */
export function factsText({ rules, facts, decisions, compared, changed }: FactsReport): string {
  const lines: string[] = [];
  for (const [rule, version] of Object.entries(rules)) {
    const own = facts.filter((fact) => fact.rule === rule);
    lines.push(`${rule} (rule ${version}): ${own.length === 0 ? 'nothing yet' : ''}`.trimEnd());
    lines.push(...own.slice(0, SHOWN).map(factText));
    if (own.length > SHOWN) lines.push(`  and ${own.length - SHOWN} more; --json gives every one`);
  }
  lines.push(
    '',
    `${decisions} decisions took ${compared} figures from measurements; ${changed.length} are another under the rules of today.`,
  );
  for (const { decisionId, at, modelKey, rule, figure: name, used, derived } of changed.slice(0, SHOWN))
    lines.push(
      `  ${at} ${modelKey}, decision ${decisionId}: ${rule} ${name} was ${figure(used)}, is ${figure(derived)}`,
    );
  if (changed.length > SHOWN) lines.push(`  and ${changed.length - SHOWN} more; --json gives every one`);
  return lines.join('\n');
}
