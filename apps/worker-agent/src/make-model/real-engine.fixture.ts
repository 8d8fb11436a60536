import { getLlama, LlamaChatSession, LlamaCompletion, LlamaLogLevel, type LlamaModel } from 'node-llama-cpp';

/**
 * What a test asks of a real engine, one job after another. The script is forked from its file, as the engine's own
 * probe needs.
 */
export type EngineJob =
  | { readonly ask: 'chat' | 'completion'; readonly file: string; readonly maxTokens: number }
  | { readonly ask: 'embed'; readonly file: string; readonly texts: readonly string[] }
  | {
      readonly ask: 'rerank';
      readonly file: string;
      readonly query: string;
      readonly documents: readonly string[];
    };

export type EngineSaid =
  | { readonly text: string; readonly reasoning: string; readonly ended: boolean }
  | { readonly vectors: readonly (readonly number[])[] }
  | { readonly scores: readonly number[] }
  | { readonly refused: string };

async function answer(model: LlamaModel, job: EngineJob): Promise<EngineSaid> {
  if (job.ask === 'embed') {
    const context = await model.createEmbeddingContext({ threads: 1 });
    const vectors = [];
    for (const text of job.texts) vectors.push((await context.getEmbeddingFor(text)).vector);
    return { vectors };
  }
  if (job.ask === 'rerank') {
    const context = await model.createRankingContext({ threads: 1 });
    return { scores: await context.rankAll(job.query, [...job.documents]) };
  }
  const context = await model.createContext({ contextSize: 512, sequences: 1, threads: 1 });
  const contextSequence = context.getSequence();
  const { maxTokens } = job;
  if (job.ask === 'completion') {
    const completion = new LlamaCompletion({ contextSequence });
    const done = await completion.generateCompletionWithMeta('Once upon a time', { maxTokens });
    return { text: done.response, reasoning: '', ended: done.metadata.stopReason === 'eogToken' };
  }
  const session = new LlamaChatSession({ contextSequence });
  const done = await session.promptWithMeta('Where does the ship lie? Wo liegt es – ja?', {
    maxTokens,
    temperature: 1,
    seed: 3,
  });
  const reasoning = done.response.flatMap((part) =>
    typeof part !== 'string' && part.type === 'segment' ? [part.text] : [],
  );
  return { text: done.responseText, reasoning: reasoning.join(''), ended: done.stopReason === 'eogToken' };
}

const llama = await getLlama({
  build: 'never',
  skipDownload: true,
  gpu: false,
  maxThreads: 1,
  logLevel: LlamaLogLevel.disabled,
});

async function answerTo(job: EngineJob): Promise<EngineSaid> {
  try {
    const model = await llama.loadModel({ modelPath: job.file, gpuLayers: 0 });
    try {
      return await answer(model, job);
    } finally {
      await model.dispose();
    }
  } catch (error) {
    return { refused: error instanceof Error ? error.message : String(error) };
  }
}

process.on('message', (job: EngineJob) => void answerTo(job).then((said) => process.send?.(said)));
process.on('disconnect', () => process.exit(0));
