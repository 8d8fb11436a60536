export { memo } from '#domain/memo.js';
