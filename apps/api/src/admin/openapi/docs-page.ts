/** A page of its own: it reads the description beside it and shows it; nothing comes from another server. */
export const DOCS_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Berth management</title>
<style>
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
summary{cursor:pointer;padding:.3rem 0}code,b{font-family:ui-monospace,monospace}b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse;margin:.5rem 0 1rem 1rem}td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}
</style></head><body><h1>Berth management</h1><p id="about">Reading the description…</p><main id="routes"></main>
<script>
const add=(to,name,text)=>{const e=document.createElement(name);if(text!==undefined)e.textContent=text;to.append(e);return e}
const typeOf=(s)=>s.enum?s.enum.join(' | '):s.type==='array'?typeOf(s.items)+'[]':(s.type||'')+(s.default===undefined?'':' ('+s.default+')')
fetch('openapi.json').then((r)=>r.json()).then((d)=>{
  about.textContent=d.info.description
  for(const [path,methods] of Object.entries(d.paths))for(const [method,o] of Object.entries(methods)){
    const box=add(routes,'details'),head=add(box,'summary')
    add(head,'b',method.toUpperCase());add(head,'code',path);add(head,'span',' – '+o.summary)
    const table=add(box,'table')
    const row=(...cells)=>{const r=add(table,'tr');for(const c of cells)add(r,'td',c)}
    for(const p of o.parameters||[])row(p.in,p.name+(p.required?' *':''),typeOf(p.schema))
    const body=o.requestBody&&o.requestBody.content['application/json'].schema
    if(body)for(const [n,s] of Object.entries(body.properties))row('body',n+(body.required.includes(n)?' *':''),typeOf(s))
    for(const [status,r] of Object.entries(o.responses))row(status,r.description,'')
  }
}).catch((e)=>{about.textContent='The description cannot be read: '+e.message})
</script></body></html>
`;
