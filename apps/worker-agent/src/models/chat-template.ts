/** What a chat template shows that its model was trained for. */
export interface TemplateFacts {
  readonly tools: boolean;
  readonly reasoning: boolean;
}

/** The variable of the tools that were offered, as Jinja templates and Ollama's Go templates name it. */
const TOOLS = /\btools\b|\.Tools\b|\bavailable_tools\b/;
/** Marks of thought that is kept apart from the answer, and switches for it. */
const REASONING =
  /<\/?think(?:ing)?>|\[\/?THINK\]|reasoning_content|enable_thinking|reasoning_effort|<\|channel\|>|<\|START_THINKING\|>|\.Thinking\b|\.ThinkLevel\b/;

export const readTemplate = (template: string): TemplateFacts => ({
  tools: TOOLS.test(template),
  reasoning: REASONING.test(template),
});

/** Several templates of one model: what any of them shows. */
export const anyOf = (templates: readonly TemplateFacts[]): TemplateFacts | undefined =>
  templates.length === 0
    ? undefined
    : { tools: templates.some((t) => t.tools), reasoning: templates.some((t) => t.reasoning) };
