# Tests of the passes: sheaf-opt on textual Programs, checked by FileCheck.
import os

import lit.formats

config.name = "sheaf-passes"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params.get("work", os.path.join(config.test_source_root, "out"))

tools = [lit_config.params["tools"], lit_config.params["llvm_tools"]]
config.environment["PATH"] = os.pathsep.join(tools + [os.environ["PATH"]])
