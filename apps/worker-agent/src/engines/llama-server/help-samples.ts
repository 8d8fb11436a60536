/** For tests: help texts in the shape of llama-server's, of a present and of an older release, shortened. */

export const PRESENT_HELP = `----- common params -----

-h,    --help, --usage                  print usage and exit
--version                               show version and build info
-t,    --threads N                      number of CPU threads to use during generation (default: -1)
                                        (env: LLAMA_ARG_THREADS)
-tb,   --threads-batch N                number of threads to use during batch and prompt processing (default:
                                        same as --threads)
-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = loaded from model)
                                        (env: LLAMA_ARG_CTX_SIZE)
-b,    --batch-size N                   logical maximum batch size (default: 2048)
-ub,   --ubatch-size N                  physical maximum batch size (default: 512)
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
-ctk,  --cache-type-k TYPE              KV cache data type for K
                                        allowed values: f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1
-ctv,  --cache-type-v TYPE              KV cache data type for V
-dev,  --device <dev1,dev2,..>          comma-separated list of devices to use for offloading (none = don't
                                        offload)
--list-devices                          print list of available devices and exit
-ncmoe, --n-cpu-moe N                   keep the Mixture of Experts (MoE) weights of the first N layers in the CPU
-ngl,  --gpu-layers, --n-gpu-layers N   max. number of layers to store in VRAM, either an exact number, 'auto', or
                                        'all' (default: auto)
-fit,  --fit [on|off]                   whether to adjust unset arguments to fit in device memory (default: 'on')
-m,    --model FNAME                    model path to load
-lv,   --verbosity, --log-verbosity N   Set the verbosity threshold.
--offline                               Offline mode: forces use of cache, prevents network access

----- server-specific params -----

-np,   --parallel N                     number of server slots (default: -1, -1 = auto)
-kvu,  --kv-unified, -no-kvu, --no-kv-unified
                                        use single unified KV buffer shared across all sequences
-cram, --cache-ram N                    set the maximum cache size in MiB (default: 8192, -1 - no limit, 0 -
                                        disable)
-a,    --alias STRING                   set model name aliases, comma-separated (to be used by API)
--host HOST                             ip address to listen, or bind to an UNIX socket if the address ends
--port PORT                             port to listen (default: 8080)
--ui, --no-ui                           whether to enable the Web UI (default: enabled)
--embedding, --embeddings               restrict to only support embedding use case
--rerank, --reranking                   enable reranking endpoint on server (default: disabled)
--api-key KEY                           API key to use for authentication, multiple keys can be provided
                                        (env: LLAMA_API_KEY)
--api-key-file FNAME                    path to file containing API keys (default: none)
--metrics                               enable prometheus compatible metrics endpoint (default: disabled)
--jinja, --no-jinja                     whether to use jinja template engine for chat (default: enabled)
`;

/** Before auto-fit, unified caches and the prompt cache; flash attention was a switch. */
export const OLD_HELP = `-m,    --model FNAME                    model path
-c,    --ctx-size N                     size of the prompt context
-np,   --parallel N                     number of parallel sequences to decode
-ngl,  --gpu-layers, --n-gpu-layers N   number of layers to store in VRAM
-t,    --threads N                      number of threads
-ub,   --ubatch-size N                  physical maximum batch size
-fa,   --flash-attn                     enable Flash Attention (default: disabled)
-ctk,  --cache-type-k TYPE              KV cache data type for K
-ctv,  --cache-type-v TYPE              KV cache data type for V
-a,    --alias STRING                   set alias for model name
--host HOST                             ip address to listen
--port PORT                             port to listen
--no-webui                              Disable the Web UI
--api-key-file FNAME                    path to file containing API keys (default: none)
`;
