import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '#runtime/process-info.js';
import { fakeServerScript, writeProgram } from '../../engines/llama-server/fake-server.js';

const fixture = (name: string): string =>
  join(packageRoot(), 'apps/worker-agent/src/hardware/gpus/fixtures', name);

/**
 * For tests: drivers' tools as programs on a PATH of their own, which print recorded outputs as often as they are asked
 * to. What they print, and whether they hang, is changed while they run.
 */
export class FakeTools {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-tools-'));

  /** Before the others on PATH. */
  get path(): string {
    return `${this.folder}:/usr/bin:/bin`;
  }

  /** @param refuses fields that a driver of its generation does not know */
  nvidia(refuses: readonly string[] = []): this {
    const refusals = refuses.map(
      (field) => `*${field}*) echo 'Field "${field}" is not a valid field to query.'; exit 2 ;;`,
    );
    return this.program(
      'nvidia-smi',
      `case "$*" in
  *"-q -x"*) file=report.xml ;;
  "-L") file=listing.txt ;;
  *--query-gpu*) file=lines.csv ;;
  *) exit 1 ;;
esac
case "$*" in
  ${refusals.join('\n  ')}
  *) ;;
esac
say() { while [ -e "$dir/hangs" ]; do sleep 0.1; done; cat "$dir/$file" 2>/dev/null; }
say
case "$*" in *-lms*) while sleep 0.1; do say; done ;; esac`,
    );
  }

  /** @param files what is printed, by the first word that is asked for */
  json(name: 'amd-smi' | 'rocm-smi', files: Readonly<Record<string, string>>): this {
    for (const [word, recorded] of Object.entries(files)) this.recorded(`${name}-${word}`, recorded);
    return this.program(
      name,
      `while [ -e "$dir/hangs" ]; do sleep 0.1; done
exec cat "$dir/${name}-$1"`,
    );
  }

  /** A llama-server that answers what it is asked at a probe, and serves nothing. */
  llamaServer(help: string): this {
    return this.program('llama-server', fakeServerScript({ help }));
  }

  /** What a file that a tool prints holds from now on: a reader sees the old or the new. */
  print(file: string, text: string): this {
    writeFileSync(join(this.folder, `${file}.next`), text);
    renameSync(join(this.folder, `${file}.next`), join(this.folder, file));
    return this;
  }

  recorded(file: string, name: string): this {
    copyFileSync(fixture(name), join(this.folder, file));
    return this;
  }

  hang(hangs: boolean): this {
    if (hangs) writeFileSync(join(this.folder, 'hangs'), '');
    else rmSync(join(this.folder, 'hangs'), { force: true });
    return this;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private program(name: string, script: string): this {
    writeProgram(join(this.folder, name), `dir="${this.folder}"\n${script}`);
    return this;
  }
}

export const recordedText = (name: string): string => readFileSync(fixture(name), 'utf8');

/** One card of 24,564 MiB, as a driver of the 535 series prints it in lines and as a report. */
export function oneCard(
  usedMib: number | '[N/A]',
  processes: readonly (readonly [pid: number, mib: number | '[N/A]'])[],
): { readonly lines: string; readonly report: string } {
  const uuid = 'GPU-1a2b3c4d-0000-0000-0000-000000000002';
  const entries = processes.map(
    ([pid, mib]) =>
      `<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>` +
      `<pid>${pid}</pid><type>C</type><process_name>engine</process_name>` +
      `<used_memory>${mib === '[N/A]' ? 'N/A' : `${mib} MiB`}</used_memory></process_info>`,
  );
  return {
    lines: `${uuid}, NVIDIA GeForce RTX 4090, 24564, ${usedMib}, 7, 37, 61.20, [N/A], 356, 8.9\n`,
    report: `<?xml version="1.0" ?>
<nvidia_smi_log>
<gpu id="00000000:01:00.0">
<product_name>NVIDIA GeForce RTX 4090</product_name>
<mig_mode><current_mig>N/A</current_mig></mig_mode>
<uuid>${uuid}</uuid>
<fb_memory_usage><total>24564 MiB</total><reserved>356 MiB</reserved><used>${usedMib === '[N/A]' ? 'N/A' : `${usedMib} MiB`}</used></fb_memory_usage>
<processes>${entries.join('')}</processes>
</gpu>
</nvidia_smi_log>
`,
  };
}
