// Where the command writes to: files, complete or not at all, and a bar on the terminal.

#include "tools/sheaf/output_file.h"
#include "tools/sheaf/progress.h"

#include "tests/io/io_test_support.h"

namespace sheaf::tool::test {
namespace {

using io::test::TemporaryDirectory;
using io::test::userError;

TEST(Output, Files) {
  TemporaryDirectory directory;
  std::string path = directory.file("out.jsonl");
  {
    OutputFile out(path);
    out.write("lost\n");
  }
  EXPECT_EQ(::access(path.c_str(), F_OK), -1);
  {
    OutputFile out(path);
    out.write("kept\n");
    out.finish();
  }
  EXPECT_EQ(io::readSource(path).text, "kept\n");
  OutputFile nothing("/dev/null");
  nothing.write("x");
  nothing.finish();
  EXPECT_EQ(userError([&] { OutputFile(directory.file("no/out")); }),
            "cannot write '" + directory.file("no/out") + "': No such file or directory");
  OutputFile full("/dev/full");
  full.write("x");
  EXPECT_EQ(userError([&] { full.finish(); }), "cannot write '/dev/full': No space left on device");
}

TEST(Progress, Line) {
  EXPECT_EQ(Progress::line("reading", 5, 10, 40), "reading [##########..........]  50% 5/10");
  EXPECT_EQ(Progress::line("reading", 5, 0, 40), "reading 5");
  EXPECT_EQ(Progress::line("reading", 5, 10, 20), "reading  50% 5/10");
  EXPECT_EQ(Progress::line("reading", 5, 10, 8), "reading ");
  EXPECT_EQ(Progress::line("reading", 5, 10, 40, ", loss 0.5"),
            "reading [#####.....]  50% 5/10, loss 0.5");
}

} // namespace
} // namespace sheaf::tool::test
