import fc from 'fast-check';

// Properties look for new cases at each run; with FAST_CHECK_SEED a run can be had again exactly.
const seed = process.env['FAST_CHECK_SEED'];
if (seed !== undefined && seed !== '')
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });
