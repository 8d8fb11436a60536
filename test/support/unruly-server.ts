import {
  fakeServerScript,
  servesBy,
  writeProgram,
} from '../../apps/worker-agent/src/engines/llama-server/fake-server.js';
import { PRESENT_HELP } from '../../apps/worker-agent/src/engines/llama-server/help-samples.js';

/**
 * A program that passes for a llama-server, serves, and does what no real one does when asked: it ignores SIGTERM, and what
 * holds its memory is a grandchild that has left its process group.
 */
export function writeUnrulyServer(path: string, version?: string): string {
  const holds = 'const held = Buffer.alloc(64 * 2 ** 20, 1); setInterval(() => held[0], 1e6)';
  const serves = servesBy(`
    process.on("SIGTERM", () => undefined);
    require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(holds)}], { detached: true, stdio: "ignore" }).unref();
    console.error("0.00.020.000 I load_tensors:   CPU_Mapped model buffer size =     0.20 MiB");
    const answers = { "/props": JSON.stringify({ model_path: word("-m") }), "/metrics": "llamacpp:requests_processing 0\\n" };
    require("http").createServer((req, res) => res.end(answers[req.url] ?? "{}")).listen(Number(word("--port")), "127.0.0.1");`);
  const server = { help: PRESENT_HELP, serves, ...(version === undefined ? {} : { version }) };
  return writeProgram(path, fakeServerScript(server));
}
