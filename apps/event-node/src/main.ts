import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf, StartError } from './errors.js';
import { onStopRequest, tellSupervisor } from './lifecycle.js';
import { startEventNode, type EventNode, type EventNodeOptions } from './node.js';

const USAGE = `Usage: berth event-node --data DIR [--port N] [--host H] [--insecure]

  --data DIR    where the log, its certificates and its credential are kept
  --port N      2113 by default; 0 takes a free port
  --host H      127.0.0.1 by default
  --insecure    no TLS and no password; on loopback only, for tests
`;

function optionsFrom(
  args: readonly string[],
): Pick<EventNodeOptions, 'dataDir' | 'port' | 'host' | 'insecure'> {
  const { values } = parse(args);
  if (values.help) {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  if (!values.data) throw new StartError(`--data DIR is missing: where shall the log be kept?\n\n${USAGE}`);
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new StartError(`--port ${values.port} is no port: give a number from 0 to 65535.`);
  }
  return { dataDir: resolve(values.data), port, host: values.host, insecure: values.insecure };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', default: '2113' },
        data: { type: 'string' },
        host: { type: 'string', default: '127.0.0.1' },
        insecure: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    throw new StartError(`${messageOf(error)}\n\n${USAGE}`);
  }
}

const say = (message: string): void => {
  process.stderr.write(`event-node: ${message}\n`);
};

async function run(): Promise<void> {
  let node: EventNode | undefined;
  const asked = new AbortController();
  const stop = () => {
    asked.abort();
    if (!node) return;
    node.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        say(`did not stop in order: ${messageOf(error)}`);
        process.exit(1);
      },
    );
  };
  onStopRequest(stop);
  try {
    node = await startEventNode({
      ...optionsFrom(process.argv.slice(2)),
      say,
      onDamage: (error) => {
        say(
          `the log is damaged (${messageOf(error)}); stopping. The next start sets it aside and says what is lost.`,
        );
        process.exit(1);
      },
    });
  } catch (error) {
    const message = messageOf(error);
    say(error instanceof StartError ? message : `could not start: ${message}`);
    if (!(error instanceof StartError) && error instanceof Error)
      process.stderr.write(`${error.stack ?? ''}\n`);
    tellSupervisor({ berth: 'failed', message });
    process.exitCode = 1;
    // The message needs a moment on the channel.
    setTimeout(() => process.exit(1), 100);
    return;
  }
  const details = { port: node.port, url: node.publicAddress, connectionFile: node.connectionFile };
  if (process.connected) tellSupervisor({ berth: 'ready', details });
  else process.stdout.write(`${node.publicAddress}\n`);
  if (asked.signal.aborted) stop();
}

await run();
