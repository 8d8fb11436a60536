import { setTimeout as sleep } from 'node:timers/promises';

/** What we read of `GET /v1/models`. */
interface ServedModel {
  readonly id: string;
  readonly berth?: { readonly kind?: string; readonly smoke?: boolean };
}

const MODELS_WITHIN_MS = 5_000;

/**
 * The last words of a start: the address, and a call that works as it stands.
 * The catalogue reaches the api through the log, so a first start waits for it for some seconds.
 */
export async function greeting(address: string, seconds: number, gone: AbortSignal): Promise<string> {
  const models = await servedModels(address, gone);
  const lines = [`Berth answers at ${address}/v1 (started in ${seconds.toFixed(1)} s).`, ''];
  const chat = firstChatModel(models);
  if (chat === undefined) {
    lines.push(
      models.length === 0
        ? 'No model was found. Fetch one with `bin/berth pull OWNER/REPO`, or put a GGUF file into the folder of models'
        : 'No chat model was found. Fetch one with `bin/berth pull OWNER/REPO`, or put a GGUF file into the folder of models',
      '(`berth up --print-config` shows where that is); it is found while Berth runs.',
    );
  } else {
    lines.push('Try a chat:', '', `  ${curlLine(address, chat.id)}`, '');
    lines.push(
      'With an OpenAI client:',
      '',
      `  base_url="${address}/v1", api_key="none", model="${chat.id}"`,
    );
    if (chat.berth?.smoke === true) {
      lines.push(
        '',
        `${chat.id} is only a smoke model: it is real and small, it shows that everything works, and it says nothing`,
        'sensible. Fetch a model that does with `bin/berth pull OWNER/REPO`.',
      );
    }
  }
  lines.push(
    '',
    `${address}/ shows what runs in a browser, \`bin/berth status\` here. Ctrl-C stops everything.`,
  );
  return `\n${lines.join('\n')}\n`;
}

export function firstChatModel(models: readonly ServedModel[]): ServedModel | undefined {
  const chats = models.filter(({ berth }) => berth?.kind === undefined || berth.kind === 'chat');
  // A smoke model is for when there is nothing else.
  return chats.find(({ berth }) => berth?.smoke !== true) ?? chats[0];
}

export function curlLine(address: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 256 });
  return `curl ${address}/v1/chat/completions -H 'content-type: application/json' -d '${body.replaceAll("'", `'\\''`)}'`;
}

async function servedModels(address: string, gone: AbortSignal): Promise<readonly ServedModel[]> {
  const deadline = performance.now() + MODELS_WITHIN_MS;
  for (;;) {
    try {
      const answer = await fetch(`${address}/v1/models`, {
        signal: AbortSignal.any([gone, AbortSignal.timeout(2_000)]),
      });
      const { data = [] } = (await answer.json()) as { data?: readonly ServedModel[] };
      if (data.length > 0) return data;
    } catch {
      // Not answering yet, or asked to stop: tried again until the time is up.
    }
    if (gone.aborted || performance.now() > deadline) return [];
    await sleep(50);
  }
}
