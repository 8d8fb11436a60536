export { damage, DAMAGES, type Damage } from './damage.js';
export {
  expectedText,
  isPreset,
  makeModel,
  PRESETS,
  type Expected,
  type MadeModel,
  type MakeModelOptions,
  type Preset,
} from './make-model.js';
