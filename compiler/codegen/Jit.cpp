//===- Jit.cpp - From LLVM IR to code in memory ---------------------------===//
#include "compiler/codegen/Jit.h"

#include "compiler/codegen/Link.h"
#include "compiler/codegen/LongFunctions.h"
#include "compiler/target/Features.h"
#include "compiler/target/Target.h"
#include "runtime/model/error.h"

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <map>
#include <thread>

namespace sheaf::driver {

namespace {

std::string text(llvm::Error error) { return llvm::toString(std::move(error)); }

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const rt::Target &target) {
  llvm::TargetOptions options;
  // A product is the FMA chain that the kernel generator wrote: nothing may be contracted on top.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EmitStackSizeSection = true;
  llvm::Triple triple = target::tripleOf(target);
  return std::unique_ptr<llvm::TargetMachine>(target::codeGenerator(triple).createTargetMachine(
      triple, target::leastProcessor(triple), target::featureString(target.features), options,
      llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
}

/// LLVM 22 leaves out what a `musttail` call passes on the stack (llvm-project issue 199224). A
/// `tail` call of tailcc is a tail call as surely where its return follows it, and what comes after
/// the passes parts the two no more.
void lowerMustTail(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      if (llvm::CallInst *call = block.getTerminatingMustTailCall())
        if (call->getCallingConv() == llvm::CallingConv::Tail)
          call->setTailCallKind(llvm::CallInst::TCK_Tail);
}

/// Optimises the module's IR.
void runPasses(CodeModule &code, llvm::TargetMachine &machine) {
  if (code.passes == IrPasses::None)
    return;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1).run(*code.module, modules);
  lowerMustTail(*code.module);
}

/// Settles what the code generator does. Kernels' loops come with the addresses that they go along
/// (Emitter::carryWalks). To search for better ones takes LLVM as long as all the rest of a kernel
/// does, and finds none.
std::unique_ptr<LongFunctions> setGate(CodeModule &code) {
  bool isKernel = code.passes == IrPasses::None;
  auto gate = std::make_unique<LongFunctions>(isKernel ? "Loop Strength Reduction" : "");
  if (!isKernel)
    gate->divide(*code.module);
  code.context->setOptPassGate(*gate);
  return gate;
}

/// The largest stack frame of an object's functions, its return address included.
uint64_t frameOf(const ObjectCode &object) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      {{reinterpret_cast<const char *>(object.data()), object.size()}, "generated code"});
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  uint64_t largest = 0;
  for (const llvm::object::SectionRef &section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!name || !contents) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(contents.takeError());
      continue;
    }
    if (*name != ".stack_sizes")
      continue;
    // Of each function its address, then the bytes of its frame.
    llvm::DataExtractor data(*contents, /*IsLittleEndian=*/true, sizeof(void *));
    llvm::DataExtractor::Cursor cursor(0);
    while (cursor && !data.eof(cursor)) {
      data.skip(cursor, sizeof(uint64_t));
      largest = std::max(largest, data.getULEB128(cursor) + sizeof(void *));
    }
    llvm::consumeError(cursor.takeError());
  }
  return largest;
}

class ProcessorCompiler final : public ModuleCompiler {
public:
  explicit ProcessorCompiler(const rt::Target &target)
      : target_(target), machine_(makeTargetMachine(target)) {}

  void prepare(llvm::Module &module) override;
  ObjectCode compile(CodeModule &code) override;
  std::string assembly(CodeModule &code) override;

private:
  const rt::Target &target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

void ProcessorCompiler::prepare(llvm::Module &module) {
  module.setTargetTriple(machine_->getTargetTriple());
  module.setDataLayout(machine_->createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!target_.tuning.empty())
      function.addFnAttr("tune-cpu", target_.tuning);
    if (!machine_->getTargetTriple().isX86())
      continue;
    // Some AVX-512 machines are tuned to prefer 256 bits; vectors here are as wide as was meant.
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
  }
}

ObjectCode ProcessorCompiler::compile(CodeModule &code) {
  prepare(*code.module);
  runPasses(code, *machine_);
  std::unique_ptr<LongFunctions> gate = setGate(code);
  auto object = llvm::orc::SimpleCompiler(*machine_)(*code.module);
  if (!object)
    throw InternalError("code generation failed: " + text(object.takeError()));
  return {(*object)->getBufferStart(), (*object)->getBufferEnd()};
}

std::string ProcessorCompiler::assembly(CodeModule &code) {
  prepare(*code.module);
  runPasses(code, *machine_);
  std::unique_ptr<LongFunctions> gate = setGate(code);
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw InternalError("LLVM cannot print assembly for this machine");
  passes.run(*code.module);
  return std::string(buffer);
}

} // namespace

CodeModule::CodeModule() = default;
CodeModule::CodeModule(CodeModule &&) noexcept = default;
CodeModule &CodeModule::operator=(CodeModule &&other) noexcept {
  // The module must go before the context that owns its types.
  module = std::move(other.module);
  context = std::move(other.context);
  passes = other.passes;
  compiler = std::move(other.compiler);
  return *this;
}
CodeModule::~CodeModule() { module.reset(); }

CompilerFactory compilersFor(const rt::Target &target) {
  return [&target] { return std::make_unique<ProcessorCompiler>(target); };
}

std::unique_ptr<ModuleCompiler> compilerOf(const CodeModule &module, const rt::Target &host) {
  return module.compiler ? (*module.compiler)() : std::make_unique<ProcessorCompiler>(host);
}

std::vector<ObjectCode> compileModules(std::vector<CodeModule> modules, const rt::Target &target,
                                       unsigned threads, std::stop_token stop) {
  std::vector<ObjectCode> objects(modules.size());
  std::vector<std::exception_ptr> errors(modules.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    // To make one takes longer than to use it for a small module.
    std::map<const CompilerFactory *, std::unique_ptr<ModuleCompiler>> compilers;
    for (size_t i = next++; i < modules.size() && !stop.stop_requested(); i = next++) {
      try {
        std::unique_ptr<ModuleCompiler> &compiler = compilers[modules[i].compiler.get()];
        if (!compiler)
          compiler = compilerOf(modules[i], target);
        objects[i] = compiler->compile(modules[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
      std::shared_ptr<const CompilerFactory> kept = std::move(modules[i].compiler);
      modules[i] = CodeModule();
      modules[i].compiler = std::move(kept);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < std::min<size_t>(threads, modules.size()); ++i)
      helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
  return objects;
}

struct Jit::Impl {
  std::unique_ptr<rt::LoadedCode> code;
  std::vector<std::map<std::string, uint64_t, std::less<>>> symbols; ///< by object
  std::vector<uint64_t> largestFrames;                               ///< by object
};

Jit::Jit(std::span<const ObjectCode> objects) : impl_(std::make_unique<Impl>()) {
  for (const ObjectCode &object : objects)
    impl_->largestFrames.push_back(frameOf(object));
  LinkedCode code = linkObjects(objects);
  if (std::optional<std::string> problem = code.layout.problem())
    throw InternalError("cannot load generated code: " + *problem);
  impl_->symbols = std::move(code.symbols);
  impl_->code = std::make_unique<rt::LoadedCode>(std::move(code.layout), code.image);
}
Jit::~Jit() = default;

void *Jit::address(size_t object, std::string_view symbol) const {
  const auto &symbols = impl_->symbols.at(object);
  auto found = symbols.find(symbol);
  if (found == symbols.end())
    throw InternalError("generated code does not define '" + std::string(symbol) + "'");
  return const_cast<uint8_t *>(impl_->code->base()) + found->second;
}

const rt::LoadedCode &Jit::code() const { return *impl_->code; }

uint64_t Jit::largestFrame(size_t object) const { return impl_->largestFrames.at(object); }

} // namespace sheaf::driver
