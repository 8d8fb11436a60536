import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

const OUT = join(import.meta.dirname, '../../dist/apps/dashboard');

/** Compressed once here, so that the api sends files as they lie. */
const compressed: Plugin = {
  name: 'berth-compressed',
  apply: 'build',
  closeBundle() {
    for (const name of readdirSync(OUT, { recursive: true, encoding: 'utf8' })) {
      if (!/\.(js|css|html|svg)$/.test(name)) continue;
      const file = join(OUT, name);
      const body = readFileSync(file);
      writeFileSync(`${file}.br`, brotliCompressSync(body));
      writeFileSync(`${file}.gz`, gzipSync(body, { level: 9 }));
    }
  },
};

export default defineConfig({
  root: import.meta.dirname,
  // Relative, so that the page works below a path of a reverse proxy.
  base: './',
  plugins: [svelte({ configFile: false }), compressed],
  resolve: { conditions: ['source', 'browser'] },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    assetsInlineLimit: 0,
  },
});
