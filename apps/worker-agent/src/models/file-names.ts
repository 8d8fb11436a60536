/** Which files a scan looks at, by their names alone. */

const GGUF = /\.gguf$/i;
const SAFETENSORS = /\.safetensors$/i;
const PICKLED = /\.(?:bin|pt|pth|ckpt|pkl|pickle)$/i;
/** What a trainer leaves beside weights. */
const OF_A_TRAINER = /(?:^|\/)(?:optimizer|scheduler|training_args|rng_state|scaler|trainer_state)[^/]*$/i;
/** In `.bin`, only these are weights: other programs use the ending for much else. */
const PICKLED_BIN = /(?:^|\/)(?:pytorch_model|diffusion_pytorch_model|adapter_model|model)[^/]*\.bin$/i;

/** Small files that say what the weights beside them are. */
export const MARKER = 'berth.json';
const DESCRIBING = new Set([
  MARKER,
  'config.json',
  'model_index.json',
  'adapter_config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer.model',
  'tokenizer_config.json',
  'tekken.json',
  'vocab.json',
  'vocab.txt',
  'spiece.model',
  'sentencepiece.bpe.model',
  'chat_template.jinja',
  'chat_template.json',
  'preprocessor_config.json',
  'processor_config.json',
  'modules.json',
  'config_sentence_transformers.json',
  'hf_quant_config.json',
]);

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const isGguf = (name: string): boolean => GGUF.test(name);
export const isSafetensors = (name: string): boolean => SAFETENSORS.test(name);
/** Weights that Python unpickles: opening them can run anything. */
export const isPickled = (name: string): boolean =>
  PICKLED.test(name) && !OF_A_TRAINER.test(name) && (!/\.bin$/i.test(name) || PICKLED_BIN.test(name));
export const isDescribing = (name: string): boolean =>
  DESCRIBING.has(baseName(name)) || name.endsWith('.safetensors.index.json');

/** Whether a scan needs to know that the file is there. */
export const isWanted = (name: string): boolean =>
  isGguf(name) || isSafetensors(name) || isPickled(name) || isDescribing(name);
