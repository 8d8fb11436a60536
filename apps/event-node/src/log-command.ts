import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf, StartError } from './errors.js';
import { backup, restore, scavenge, verify } from './maintenance.js';

const USAGE = `Usage: berth log TASK [--data DIR]     DIR: the log's folder (BERTH_HOME/event-node)

  backup FOLDER    copy the log while it is in use
  restore FOLDER   put a backup where no log is; the node must not run
  verify           check order, gaps and the structure of the file
  scavenge         remove what retention hides
`;

const out = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};
const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: { data: { type: 'string' } },
  });
  const [task = '', folder] = positionals;
  const home = process.env['BERTH_HOME'];
  const data = values.data ?? (home ? join(home, 'event-node') : undefined);
  if (!data) throw new StartError(`--data DIR is missing: where is the log?\n\n${USAGE}`);
  const named = () => {
    if (!folder) throw new StartError(`The folder is missing.\n\n${USAGE}`);
    return folder;
  };
  switch (task) {
    case 'backup': {
      const { file, bytes, endPosition } = await backup(data, named(), say);
      out(`Copied the log up to position ${endPosition} to ${file} (${mib(bytes)}).`);
      return 0;
    }
    case 'restore': {
      const { events } = restore(named(), data);
      out(
        `Restored ${counted(events, 'event')} to ${data}. The log has a new identity: views are built again from it.`,
      );
      return 0;
    }
    case 'verify': {
      const { events, streams, endPosition, faults } = await verify(data, say);
      for (const fault of faults) out(fault);
      const verdict = faults.length === 0 ? 'The log is sound' : counted(faults.length, 'fault');
      out(
        `${verdict}: ${counted(events, 'event')} in ${counted(streams, 'stream')}, up to position ${endPosition}.`,
      );
      return faults.length === 0 ? 0 : 1;
    }
    case 'scavenge': {
      const { removedEvents, streams, freedBytes } = await scavenge(data, say);
      out(
        `Removed ${counted(removedEvents, 'event')} of ${counted(streams, 'stream')}, ${mib(freedBytes)} freed.`,
      );
      return 0;
    }
    default:
      throw new StartError(USAGE);
  }
}

try {
  process.exitCode = await run();
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}
