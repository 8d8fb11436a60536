import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { packageRoot } from '#runtime/process-info.js';
import { expectedText } from '../../apps/worker-agent/src/make-model/index.js';
import { expectInvariants } from '../support/log.js';
import { waitFor } from '../support/wait.js';
import { cleanEnv, processesOf, removeFolder, startStack, tempFolder, type Stack } from '../support/stack.js';

const sh = promisify(execFile);
const bin = join(packageRoot(), 'bin', 'berth');

describe('several stacks, and what is in their way', () => {
  const stacks: Stack[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    for (const stack of stacks.splice(0)) {
      await stack.stop();
      await expectInvariants(stack.home);
      removeFolder(stack.home);
    }
    folders.splice(0).forEach(removeFolder);
  });

  const failing = async (args: string[], env: Record<string, string> = {}) => {
    const home = tempFolder();
    folders.push(home);
    const result = await sh(process.execPath, [bin, ...args], {
      env: { ...cleanEnv(home), BERTH_HOME: home, ...env },
      timeout: 60_000,
    }).then(
      (r) => ({ code: 0, stdout: r.stdout, stderr: r.stderr }),
      (e: unknown) => e as { code: number; stdout: string; stderr: string },
    );
    return { home, ...result };
  };

  it('two homes side by side never meet', async () => {
    const [one, two] = await Promise.all([
      startStack({ models: { 'left/model': 'chat-a' } }),
      startStack({ models: { 'right/model': 'chat-b' } }),
    ]);
    stacks.push(one, two);
    const ids = async (s: Stack) =>
      ((await (await fetch(`${s.url}/v1/models`)).json()) as { data: { id: string }[] }).data.map(
        (m) => m.id,
      );
    expect(await ids(one)).toEqual(['left/model']);
    expect(await ids(two)).toEqual(['right/model']);
    const text = async (s: Stack, model: string) =>
      ((await (await s.chat(model)).json()) as { choices: { message: { content: string } }[] }).choices[0]!
        .message.content;
    expect(await Promise.all([text(one, 'left/model'), text(two, 'right/model')])).toEqual([
      expectedText('chat-a').text,
      expectedText('chat-b').text,
    ]);
  });

  it('works from a home with spaces in its path', async () => {
    const home = tempFolder('berth home with spaces ');
    const stack = await startStack({ home, models: { 'quay/a': 'chat-a' } });
    stacks.push(stack);
    expect((await stack.chat('quay/a')).status).toBe(200);
  });

  it('leaves no engine behind when Ctrl-C comes twice in the middle of a stream', async () => {
    const stack = await startStack({ models: { 'quay/endless': 'endless' } });
    folders.push(stack.home);
    const response = await stack.chat('quay/endless', 'go on', { stream: true, max_tokens: 8000 });
    const reader = response.body!.getReader();
    await reader.read();
    process.kill(-stack.process.pid!, 'SIGINT');
    await waitFor('the stop has begun', 10_000, () => stack.output().includes('Stopping'));
    // Later than what counts as one Ctrl-C that came by two ways.
    const second = Date.now() + 400;
    await waitFor('the moment of the second', 5000, () => Date.now() > second);
    if (stack.process.exitCode === null) process.kill(-stack.process.pid!, 'SIGINT');
    await stack.stop();
    await waitFor('every process of the home is gone', 10_000, () => processesOf(stack.home).length === 0);
    await reader.cancel().catch(() => undefined);
    await expectInvariants(stack.home, false);
  });

  it('says so when the port is taken, names the flag, and leaves nothing behind', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const { code, stdout, stderr, home } = await failing(['up', '--port', String(port)]);
    server.close();
    expect(code).not.toBe(0);
    expect(stdout + stderr).toContain(String(port));
    expect(stdout + stderr).toContain('--port');
    expect(processesOf(home)).toEqual([]);
  });

  it('prints each setting with where it came from, and masks secrets', async () => {
    const { code, stdout } = await failing(['up', '--print-config', '--port', '9123'], {
      BERTH_RAM_MAX: '2GiB',
      DATABASE_URL: 'postgres://user:hunter2@db.example/berth',
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/BERTH_PORT\s.*9123.*flag/s);
    expect(stdout).toMatch(/BERTH_RAM_MAX\s.*2\s?GiB.*environment/s);
    expect(stdout).toMatch(/BERTH_HOST\s.*127\.0\.0\.1.*default/s);
    expect(stdout).not.toContain('hunter2');
  });

  it('names the nearest for a key or command that it does not know', async () => {
    const flag = await failing(['up', '--prot', '1']);
    expect(flag.code).not.toBe(0);
    expect(flag.stderr + flag.stdout).toContain('--port');
    const command = await failing(['stauts']);
    expect(command.code).not.toBe(0);
    expect(command.stderr + command.stdout).toContain('status');
    const variable = await failing(['up', '--print-config'], { BERTH_RAMMAX: '1' });
    expect(variable.code).not.toBe(0);
    expect(variable.stderr + variable.stdout).toContain('BERTH_RAM_MAX');
  });
});
