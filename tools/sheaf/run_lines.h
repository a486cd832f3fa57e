//===- run_lines.h - Answers lines as they come -----------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_RUN_LINES_H
#define SHEAF_TOOLS_SHEAF_RUN_LINES_H

#include "tools/sheaf/answers.h"
#include "tools/sheaf/line_input.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/output_file.h"

namespace sheaf::tool {

/// The format of standard input if a line is an instance, whatever stands after it; it is told of
/// the first one, which is `input`'s line then. Null: all of the text has to be read. Throws
/// UserError.
const io::DataFormat *lineFormat(const io::ReadOptions &reading, LineInput &input);

/// Runs the line that `input` is at, and each that follows while others run, at most `most` at a
/// time. Answers come in the order of the lines; where they are numbered, as soon as they are
/// there. Returns how the command ends.
int runLines(const LoadedModel &loaded, rt::Session &session, LineInput &input,
             const io::DataFormat &format, const DataOptions &data, unsigned most,
             AnswerWriter &writer, OutputFile &output);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_RUN_LINES_H
