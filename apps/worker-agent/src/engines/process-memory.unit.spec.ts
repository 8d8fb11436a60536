import { describe, expect, it } from 'vitest';
import { mappedResidentBytes, parseStatus } from './process-memory.js';
import { engineEnvironment } from './spawn.js';

describe('what the system says of a process', () => {
  it('reads resident, anonymous and file memory', () => {
    const status =
      'Name:\tnode\nVmRSS:\t  288000 kB\nRssAnon:\t   72000 kB\nRssFile:\t  216000 kB\nThreads:\t9\n';
    expect(parseStatus(status)).toEqual({
      residentBytes: 288_000 * 1024,
      anonymousBytes: 72_000 * 1024,
      filePagesBytes: 216_000 * 1024,
    });
  });

  it('leaves out what a kernel does not say', () => {
    expect(parseStatus('VmRSS:\t100 kB\n')).toEqual({ residentBytes: 102_400 });
  });

  it('counts the resident pages of the weight files, spaces in their names included', () => {
    const smaps = [
      '7f1000000000-7f1010000000 r--s 00000000 08:01 42                         /models/a b/x.gguf',
      'Size:             262144 kB',
      'Rss:              131072 kB',
      '7f2000000000-7f2010000000 r--p 00000000 08:01 43                         /usr/lib/libc.so',
      'Rss:                 999 kB',
      '7f3000000000-7f3010000000 r--s 10000000 08:01 42                         /models/a b/x.gguf',
      'Rss:                   8 kB',
    ].join('\n');
    expect(mappedResidentBytes(smaps, new Set(['/models/a b/x.gguf']))).toBe((131_072 + 8) * 1024);
  });
});

describe('the environment of an engine', () => {
  it('has what it needs and none of our secrets', () => {
    const env = engineEnvironment(
      {
        PATH: '/bin',
        CUDA_HOME: '/cuda',
        DATABASE_URL: 'postgres://secret',
        NODE_OPTIONS: '--inspect',
        LANG: undefined,
      },
      { BERTH_ENGINE_KEY: 'k' },
    );
    expect(env).toEqual({ PATH: '/bin', CUDA_HOME: '/cuda', GGML_NO_BACKTRACE: '1', BERTH_ENGINE_KEY: 'k' });
  });
});
