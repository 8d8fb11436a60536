import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export interface FakeServer {
  readonly help: string;
  readonly version?: string;
  /** Shell lines that run with the arguments of a launch; nothing is served without. */
  readonly serves?: string;
}

/** For tests: what passes for a llama-server when it is probed. What it is asked first is kept in `<itself>.asked`. */
export const fakeServerScript = ({
  help,
  version = '4321 (80fb11a)',
  serves = 'exit 1',
}: FakeServer): string => `
echo "$1" >> "$0.asked"
case "$1" in
  --version) echo 'version: ${version}' >&2 ;;
  --help) cat <<'END'
${help}
END
  ;;
  --list-devices) echo 'Available devices:' ;;
  *) ${serves} ;;
esac`;

/** Shell lines that run JavaScript as the server: `word("-m")` is what follows an argument. No single quote may be in it. */
export const servesBy = (script: string): string =>
  `exec "${process.execPath}" -e 'const word = (name) => process.argv[process.argv.indexOf(name) + 1];${script}' -- "$@"`;

/** A program that answers as the shell script says; one that was there is replaced, as an installer does it. */
export function writeProgram(path: string, script: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.next`, `#!/bin/sh\n${script}\n`);
  chmodSync(`${path}.next`, 0o755);
  renameSync(`${path}.next`, path);
  return path;
}
