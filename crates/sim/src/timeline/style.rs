//! The page's style sheet: light and dark, by the reader's own preference.

pub(super) const STYLE: &str = r#"
:root{color-scheme:light dark;--bg:#fbfbfd;--card:#fff;--ink:#1b1f2a;--dim:#667085;--line:#e3e6ee;--lane:#f3f5fa;
--ok:#14804a;--okbg:#d3f2df;--ref:#9a5b00;--refbg:#ffe7bf;--dbt:#7a2fb0;--dbtbg:#eedcfb;--seq:#b0305f;--seqbg:#fbdce8;
--lost:#5b6577;--lostbg:#e2e6ee;--open:#8a93a6;--not:#0a63a8;--notbg:#d5eafc;--unk:#b42318;--unkbg:#fde0dc;--flag:#3b4a6b;--flagbg:#dfe7fb}
@media(prefers-color-scheme:dark){:root{--bg:#0f1218;--card:#161b24;--ink:#e7eaf1;--dim:#98a2b5;--line:#2a3140;--lane:#1a202b;
--ok:#7fe0a8;--okbg:#123a27;--ref:#ffca7a;--refbg:#46310c;--dbt:#d9adff;--dbtbg:#39214d;--seq:#ff9dbf;--seqbg:#4b1c30;
--lost:#b6bfce;--lostbg:#2c3442;--open:#8c96a8;--not:#90cbff;--notbg:#113453;--unk:#ff9d92;--unkbg:#4f1d18;--flag:#b9c8f0;--flagbg:#26324e}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header{padding:22px 28px 12px}
h1{margin:0;font-size:21px;font-weight:650;letter-spacing:-.01em}
h2{margin:0 0 10px;font-size:12px;font-weight:650;text-transform:uppercase;letter-spacing:.07em;color:var(--dim)}
.sub{margin:4px 0 0;color:var(--dim);max-width:110ch}
.badge{display:inline-block;margin-right:10px;padding:2px 10px;border-radius:999px;font-size:13px;font-weight:650;vertical-align:2px}
.badge.good{background:var(--okbg);color:var(--ok)}.badge.bad{background:var(--unkbg);color:var(--unk)}
.wrong{margin:10px 0 0;padding:10px 14px;border-left:4px solid var(--unk);background:var(--unkbg);color:var(--ink);border-radius:6px;white-space:pre-wrap;font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
main{padding:0 28px 32px;display:grid;gap:18px;grid-template-columns:minmax(0,1fr)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px;min-width:0}
.beside{display:grid;gap:18px;grid-template-columns:minmax(0,1.15fr) minmax(0,1fr)}
@media(max-width:900px){.beside{grid-template-columns:minmax(0,1fr)}}
.chart{display:flex}.chart svg{display:block;flex:none}.scroll{overflow-x:auto;min-width:0;flex:1}
svg text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}
svg .lane{fill:var(--lane)}svg .name{font-weight:700;font-size:13px}
svg .seq{font-weight:650}svg .id,svg .rec{fill:var(--dim);font-size:10px}
svg .tick{stroke:var(--line);stroke-width:1}svg .time{fill:var(--dim);font-size:10.5px}
svg .pole{stroke:var(--flag);stroke-width:1;stroke-dasharray:2 4;opacity:.55}
.bar rect{stroke-width:1.2}.bar .end{text-anchor:end;font-weight:600}.bar .broker{font-weight:700}
.bar.written rect{fill:var(--okbg);stroke:var(--ok)}.bar.written text{fill:var(--ok)}
.bar.refused rect{fill:var(--refbg);stroke:var(--ref)}.bar.refused text{fill:var(--ref)}
.bar.doubtful rect{fill:var(--dbtbg);stroke:var(--dbt);stroke-dasharray:4 3}.bar.doubtful text{fill:var(--dbt)}
.bar.sequence rect{fill:var(--seqbg);stroke:var(--seq)}.bar.sequence text{fill:var(--seq)}
.bar.lost rect{fill:var(--lostbg);stroke:var(--lost);stroke-dasharray:4 3}.bar.lost text{fill:var(--lost)}
.bar.open rect{fill:none;stroke:var(--open);stroke-dasharray:2 3}.bar.open text{fill:var(--open)}
.chip rect{fill:var(--lostbg)}
.chip.sent rect{fill:none;stroke:var(--line)}.chip.sent text{fill:var(--dim)}
.chip.delivered rect{fill:var(--ok)}.chip.not rect{fill:var(--not)}.chip.unknown rect{fill:var(--unk)}
.chip.delivered text,.chip.not text,.chip.unknown text{fill:var(--card);font-weight:600}
.chip.later rect{fill:none;stroke-width:1.4}.chip.later.delivered rect{stroke:var(--ok)}.chip.later.not rect{stroke:var(--not)}.chip.later.unknown rect{stroke:var(--unk)}
.chip.later.delivered text{fill:var(--ok)}.chip.later.not text{fill:var(--not)}.chip.later.unknown text{fill:var(--unk)}
.chip.notice rect{fill:var(--refbg)}.chip.notice text{fill:var(--ref)}
.chip.happened rect{fill:var(--flagbg)}.chip.happened text{fill:var(--flag)}
ol.script{margin:0;padding:0;list-style:none;counter-reset:line;font:12.5px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-x:auto}
ol.script li{counter-increment:line;white-space:pre;padding:0 8px 0 0;border-left:3px solid transparent}
ol.script li::before{content:counter(line);display:inline-block;width:3.2ch;margin-right:1.4ch;text-align:right;color:var(--dim);opacity:.7}
ol.script li.note{color:var(--dim)}ol.script li.want{background:color-mix(in srgb,var(--okbg) 45%,transparent)}
ol.script li.failed{background:var(--unkbg);border-left-color:var(--unk);font-weight:650}
table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;font-weight:600;color:var(--dim);font-size:12px;padding:3px 10px 5px 0}
td{padding:4px 10px 4px 0;border-top:1px solid var(--line);vertical-align:top}
td.mono{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.v{font-weight:650}.v.delivered{color:var(--ok)}.v.not{color:var(--not)}.v.unknown{color:var(--unk)}
.legend{display:flex;flex-wrap:wrap;gap:6px 16px;margin-top:12px;padding-top:10px;border-top:1px solid var(--line);color:var(--dim);font-size:12px}
.legend svg{vertical-align:-3px;margin-right:5px}
footer{padding:0 28px 28px;color:var(--dim);font-size:12px}
code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--lane);padding:1px 5px;border-radius:4px}
"#;
