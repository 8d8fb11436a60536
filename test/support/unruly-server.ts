import { chmodSync, writeFileSync } from 'node:fs';
import { PRESENT_HELP } from '../../apps/worker-agent/src/engines/llama-server/help-samples.js';

/**
 * A program that passes for a llama-server, serves, and does what no real one does when asked: it ignores SIGTERM, and what
 * holds its memory is a grandchild that has left its process group.
 */
export function writeUnrulyServer(path: string): string {
  const holds = 'const held = Buffer.alloc(64 * 2 ** 20, 1); setInterval(() => held[0], 1e6)';
  const serves = `
    const word = (name) => process.argv[process.argv.indexOf(name) + 1];
    process.on("SIGTERM", () => undefined);
    require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(holds)}], { detached: true, stdio: "ignore" }).unref();
    console.error("0.00.020.000 I load_tensors:   CPU_Mapped model buffer size =     0.20 MiB");
    const answers = { "/props": JSON.stringify({ model_path: word("-m") }), "/metrics": "llamacpp:requests_processing 0\\n" };
    require("http").createServer((req, res) => res.end(answers[req.url] ?? "{}")).listen(Number(word("--port")), "127.0.0.1");`;
  writeFileSync(
    path,
    `#!/bin/sh
case "$1" in
  --version) echo 'version: 4321 (80fb11a)' >&2 ;;
  --help) cat <<'END'
${PRESENT_HELP}
END
  ;;
  --list-devices) echo 'Available devices:' ;;
  *) exec "${process.execPath}" -e '${serves}' -- "$@" ;;
esac
`,
  );
  chmodSync(path, 0o755);
  return path;
}
