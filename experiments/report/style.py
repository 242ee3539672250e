"""The style sheet of the pages: light and dark, phone and desktop."""

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #00798c;
  --tint: #00798c1a; }
@media (prefers-color-scheme: dark) { :root { --accent: #5cc8d7; --tint: #5cc8d71f; } }
html { scroll-behavior: smooth; scroll-padding-top: 3.4rem; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: clamp(1.6rem, 4.5vw, 2.4rem); line-height: 1.15; letter-spacing: -.02em; }
h2 { margin-top: 3rem; font-size: 1.35rem; line-height: 1.25; }
p { max-width: 46rem; } .note { opacity: .75; font-size: .9rem; }
nav { position: sticky; top: 0; z-index: 1; display: flex; gap: .3rem; overflow-x: auto;
  padding: .5rem 1rem; background: Canvas; border-bottom: 1px solid var(--line);
  scrollbar-width: none; }
nav a { flex: none; padding: .2rem .7rem; border-radius: 99px; background: var(--soft);
  color: inherit; text-decoration: none; font-size: .85rem; }
nav a:hover, nav a:focus { background: var(--accent); color: Canvas; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 8px; display: block; }
.hero { width: 100%; } .panels { display: grid; gap: .8rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }
.panels img { width: 100%; box-sizing: border-box; padding: .3rem; border: 1px solid var(--line); }
.cards { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); }
.cards div { padding: .7rem .9rem; border-radius: 8px; background: var(--tint); }
.cards b { display: block; font-size: 1.35rem; line-height: 1.2; }
.cards span { font-size: .85rem; opacity: .8; }
details { margin: .8rem 0; } summary { cursor: pointer; font-weight: 600; padding: .3rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .8rem; }
th, td { padding: .35rem .4rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; font-variant-numeric: tabular-nums; } td b { color: var(--accent); }
th:first-child, td:first-child { text-align: left; } thead { background: var(--soft); }
.paper { background: var(--tint); font-style: italic; }
pre { overflow-x: auto; padding: .7rem .9rem; border-radius: 8px; background: var(--soft);
  font-size: .8rem; }
code { background: var(--soft); padding: .1em .3em; border-radius: 4px; }
@media (max-width: 40rem) { th:first-child, td:first-child { position: sticky; left: 0;
  background: Canvas; max-width: 9rem; white-space: normal; } }
"""
