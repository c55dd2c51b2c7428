// One scenario a call, `node scenarios.mjs NAME`, told by test_browser.py and test_real_service.py.
import * as answering from "./answering.mjs";
import * as around from "./around.mjs";

await { ...answering, ...around }[process.argv[2]]();
