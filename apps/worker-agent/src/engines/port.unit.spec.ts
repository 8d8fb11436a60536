import { expect, test } from 'vitest';
import { listeningInodes, saysPortIsTaken } from './port.js';

test('a listener is known by its port and its state, however the table is padded', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 41 1 0000 20 4 30 10 -1
  12: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 42 1 0000 100 0 0 10 0`;
  expect(listeningInodes(table, 8080)).toEqual(['31337']);
  expect(listeningInodes(table, 80)).toEqual(['42']);
  expect(listeningInodes(table, 50_000)).toEqual([]);
});

test.each([
  ['E berth: load failed: listen EADDRINUSE: address already in use 127.0.0.1:4711', true],
  ["srv  start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 4711", true],
  ['couldnt bind to server socket: hostname=127.0.0.1 port=4711', true],
  ['E llama_model_load: error loading model: tensor data is not within the file bounds', false],
])('%s', (line, taken) => {
  expect(saysPortIsTaken(line)).toBe(taken);
});
