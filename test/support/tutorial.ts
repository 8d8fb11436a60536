/** The commands of a page: what stands between ```sh and ```, in order. */
export const shellBlocks = (markdown: string): readonly string[] =>
  [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block.trim());
