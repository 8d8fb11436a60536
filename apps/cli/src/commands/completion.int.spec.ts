import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';

const berth = (...args: string[]) =>
  spawnSync(process.execPath, [join(packageRoot(), 'bin/berth'), ...args], { encoding: 'utf8' });

describe('shell completion', () => {
  it('completes commands, their words and their flags in a real bash', () => {
    const { stdout, status } = berth('completion', 'bash');
    expect(status).toBe(0);
    const complete = (...words: string[]) =>
      execFileSync('bash', [
        '-c',
        `${stdout}\nCOMP_WORDS=(berth ${words.join(' ')}); COMP_CWORD=${words.length}; _berth; echo "\${COMPREPLY[@]}"`,
      ])
        .toString()
        .trim()
        .split(' ');
    expect(complete('resid')).toEqual(['residents']);
    expect(complete('operator', 'ev')).toEqual(['evict', 'evict-all']);
    expect(complete('calls', '--mo')).toEqual(['--model']);
  });

  it('is made for every shell that is named, and for no other', () => {
    expect(berth('completion', 'zsh').stdout).toMatch(/^#compdef berth\n/);
    expect(berth('completion', 'fish').stdout).toContain(
      "complete -c berth -n __fish_use_subcommand -a calls -d '",
    );
    const wrong = berth('completion', 'tcsh');
    expect([wrong.status, wrong.stderr]).toEqual([2, 'berth: Write `berth completion bash|zsh|fish`\n']);
  });
});
