import { Template } from '@huggingface/jinja';
import type { LlamaModel, Token } from 'node-llama-cpp';
import { badRequest } from './failure.js';
import type { ChatRequest } from './requests.js';

/** Used when a file brings no template: the form that most instruct models were trained with. */
const CHATML = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

/** Turns a conversation into tokens by the template of the model's own file. */
export class ChatPrompt {
  readonly #template: Template;

  constructor(private readonly model: LlamaModel) {
    this.#template = new Template(this.source);
  }

  get source(): string {
    return this.model.fileInfo.metadata.tokenizer.chat_template ?? CHATML;
  }

  /** @throws RequestError with the template's own words, when it refuses the conversation. */
  tokens(request: ChatRequest): Token[] {
    const { bosString, eosString } = this.model.tokens;
    let text: string;
    try {
      text = this.#template.render({
        messages: request.messages,
        ...(request.tools.length === 0 ? {} : { tools: request.tools }),
        add_generation_prompt: true,
        bos_token: bosString ?? '',
        eos_token: eosString ?? '',
        ...request.templateArguments,
      });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw badRequest(`The model's chat template refused the messages: ${why}`, 'messages');
    }
    return withBeginning(this.model, this.model.tokenize(text, true));
  }
}

/** Puts the beginning-of-sequence token first where the model wants one and the text has none. */
export function withBeginning(model: LlamaModel, tokens: readonly Token[]): Token[] {
  const { bos, shouldPrependBosToken } = model.tokens;
  return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : [...tokens];
}
