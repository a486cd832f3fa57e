//===- Dump.cpp - Every phase and every kernel as files -------------------===//
//
// Each file is written as soon as its phase is done: when a later one breaks, the files before it
// are there.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/Pipeline.h"

#include "compiler/frontend/AstPrinter.h"
#include "runtime/io/text.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <filesystem>

namespace sheaf::driver {

namespace {

class Dumper {
public:
  Dumper(std::string directory, const SourceFile &source, const CompileOptions &options,
         Diagnostics &diags)
      : directory_(std::move(directory)), source_(source), options_(options), diags_(diags) {}

  void run() {
    write(std::filesystem::path(source_.name()).filename().string(), source_.text());
    // Those that it uses by their numbers: their own names may lead out of the directory.
    for (size_t i = 1; i < source_.files().size(); ++i)
      write(fmt::format("used/{}-{}", i,
                        std::filesystem::path(source_.files()[i].name()).filename().string()),
            source_.files()[i].text());
    write("options.txt", optionsText());
    options_.afterPass = [this, passed = options_.afterPass](std::string_view pass,
                                                             mlir::ModuleOp module) {
      if (passed)
        passed(pass, module);
      write(fmt::format("passes/{:02}-{}.mlir", ++passes_, pass), text(module));
    };
    Compilation compilation(source_, options_, diags_);
    compilation.keepKernels = true;
    if (!source_.isProgram()) {
      Compilation parsed(source_, options_, diags_);
      if (!parsed.run(Until::Parsed))
        return;
      write("ast.sheaf", printModule(parsed.ast));
    }
    // The program stands before the passes run, also when one of them breaks.
    {
      Compilation program(source_, options_, diags_);
      if (!program.run(Until::Program))
        return;
      write("program.mlir", text(*program.program));
    }
    if (!compilation.run(Until::Code))
      return;
    write("blocks.mlir", text(*compilation.blocks));
    code(compilation, "host", compilation.code.front());
    for (const kernels::Kernel &kernel : compilation.kernels)
      this->kernel(compilation, kernel);
  }

private:
  void write(const std::string &name, std::string_view text) {
    std::filesystem::path path = std::filesystem::path(directory_) / name;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    io::writeFile(path, text);
  }

  static std::string text(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/true));
    stream << '\n';
    return text;
  }

  std::string optionsText() const {
    std::string out = fmt::format("entry {}\n", options_.entry);
    for (const auto &[name, value] : options_.dims)
      out += fmt::format("dim {}={}\n", name, value);
    for (const auto &[name, value] : options_.constants)
      out += fmt::format("constant {}={}\n", name, value);
    for (const auto &[name, size] : options_.vocabularySizes)
      out += fmt::format("vocabulary '{}' of {}\n", name, size);
    for (const std::string &name : options_.without)
      out += fmt::format("without {}\n", name);
    if (rt::CacheSizes caches = options_.targetCaches; caches != rt::CacheSizes())
      out += fmt::format("target-cache L1={},L2={}\n", caches.l1, caches.l2);
    out += fmt::format("target {}\ntarget-cpu {}\n{}{}", options_.target, options_.targetCpu,
                       options_.dropout ? "dropout\n" : "", options_.training ? "training\n" : "");
    if (options_.inputGradients)
      out += "input-gradients\n";
    return out;
  }

  /// LLVM IR as it was made, and assembly.
  void code(const Compilation &compilation, const std::string &name, CodeModule &module) {
    std::unique_ptr<ModuleCompiler> compiler = compilerOf(module, compilation.target);
    compiler->prepare(*module.module);
    std::string ir;
    llvm::raw_string_ostream stream(ir);
    module.module->print(stream, nullptr);
    write(name + ".ll", ir);
    write(name + ".s", compiler->assembly(module));
  }

  void kernel(Compilation &compilation, const kernels::Kernel &kernel) {
    ir::BlockOp block = kernel.block;
    std::string name = "kernels/" + block.getSymName().str();
    std::string plan = fmt::format("{}: {} words a record, ", kernel.symbol, kernel.words) +
                       compilation.generator->describeLayout(kernel);
    for (const std::string &remark : kernel.remarks)
      plan += remark + "\n";
    write(name + ".txt", plan);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        compilation.generator->emit(kernel, *compilation.context);
    if (!module)
      throw InternalError("kernel " + kernel.symbol + " could not be emitted");
    write(name + ".mlir", text(*module));
    CodeModule lowered = compilation.generator->lower(*module);
    if (!lowered.module)
      throw InternalError("kernel " + kernel.symbol + " could not be lowered");
    code(compilation, name, lowered);
  }

  std::string directory_;
  const SourceFile &source_;
  CompileOptions options_;
  Diagnostics &diags_;
  int passes_ = 0;
};

} // namespace

void dump(const SourceFile &source, const CompileOptions &options, const std::string &directory,
          Diagnostics &diags) {
  Dumper(directory, source, options, diags).run();
}

} // namespace sheaf::driver
