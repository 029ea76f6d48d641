"""How the HTML page looks, in light and in dark. Text only: nothing of it is loaded from anywhere."""

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --page: #fff; --box: #f6f8fa; --edge: #d1d9e0;
  --good: #1a7f37; --bad: #cf222e; --wait: #9a6700; --add: #dafbe1; --del: #ffebe9; --hunk: #ddf4ff;
  --you: #ddf4ff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --page: #0d1117;
  --box: #151b23; --edge: #3d444d; --good: #3fb950; --bad: #f85149; --wait: #d29922; --add: #12361f;
  --del: #3c1618; --hunk: #0c2d4d; --you: #0c2d4d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; color: var(--ink); background: var(--page);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--edge); }
h2 small, .who small { color: var(--dim); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
a { color: inherit; text-decoration-color: var(--dim); }
pre { margin: .5rem 0 0; padding: .6rem .75rem; overflow-x: auto; border-radius: 6px; background: var(--page);
  border: 1px solid var(--edge); font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
details { margin-top: .5rem; }
summary { cursor: pointer; color: var(--dim); }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .5rem; text-align: left; border-bottom: 1px solid var(--edge); vertical-align: top; }
th { color: var(--dim); font-weight: 500; }
td.about { overflow-wrap: anywhere; }
td.time { width: 22%; min-width: 6rem; }
.said { margin: .75rem 0; }
.who { font-weight: 600; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.user .text { padding: .5rem .75rem; border-radius: 6px; background: var(--you); }
.call { margin: .75rem 0; padding: .6rem .75rem; border: 1px solid var(--edge); border-left: 4px solid var(--dim);
  border-radius: 6px; background: var(--box); }
.call p { margin: 0; overflow-wrap: anywhere; }
.facts { color: var(--dim); font-size: .9rem; }
.status { font-weight: 600; }
.success { border-left-color: var(--good); } .success .status, td.success { color: var(--good); }
.error { border-left-color: var(--bad); } .error .status, td.error { color: var(--bad); }
.interrupted, .awaiting_approval, .executing, .pending { border-left-color: var(--wait); }
.interrupted .status, .awaiting_approval .status, .executing .status, .pending .status, td.interrupted,
td.awaiting_approval, td.executing, td.pending { color: var(--wait); }
.diff span { display: block; min-height: 1.45em; }
.diff .add { background: var(--add); }
.diff .del { background: var(--del); }
.diff .hunk { background: var(--hunk); }
.diff .head { color: var(--dim); }
.graph { overflow-x: auto; } .graph svg { max-width: 100%; height: auto; }
svg.bar { display: block; width: 100%; height: .6rem; margin-top: .45rem; background: var(--box); }
svg.bar rect { fill: var(--dim); stroke: none; }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem; }
"""
