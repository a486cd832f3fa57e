//===- Pipeline.cpp - The compiler's stages in order ----------------------===//
#include "compiler/driver/Pipeline.h"

#include "compiler/backends/Backends.h"
#include "compiler/driver/Config.h"
#include "compiler/frontend/Checker.h"
#include "compiler/frontend/Parser.h"
#include "compiler/frontend/ProgramGen.h"
#include "compiler/host/Host.h"
#include "compiler/ir/Place.h"
#include "compiler/ir/Program.h"
#include "compiler/model/Describe.h"
#include "compiler/ops/Verify.h"
#include "compiler/passes/Pipeline.h"
#include "compiler/target/Target.h"
#include "runtime/model/error.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace sheaf::driver {

namespace {

/// Collects what MLIR reports: a broken promise of a pass, never something for the user.
class MlirErrors {
public:
  explicit MlirErrors(mlir::MLIRContext &context)
      : handler_(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
            return mlir::success();
          text_ += "\n  " + ir::placeOf(diagnostic.getLocation()) + ": " + diagnostic.str();
          return mlir::success();
        }) {}

  [[noreturn]] void raise(const std::string &what) const { throw InternalError(what + text_); }

private:
  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace

Compilation::Compilation(const SourceFile &source, const CompileOptions &options,
                         Diagnostics &diags)
    : precision(options.precision), source_(source), options_(options), diags_(diags) {}

// Kernel plans hold values of `blocks`, and both hold attributes of the context.
Compilation::~Compilation() {
  kernelModules.clear();
  kernels.clear();
}

template <typename Stage> auto Compilation::timed(const char *name, Stage stage) {
  struct Clock {
    std::vector<PhaseTime> &times;
    size_t index;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    ~Clock() {
      times[index].ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count();
    }
  };
  checkStop();
  // Before the stage runs, so that its own parts stand after it.
  times.push_back({name, 0});
  Clock clock{times, times.size() - 1};
  return stage();
}

void Compilation::checkStop() const {
  if (options_.stop.stop_requested())
    throw Stopped();
}

bool Compilation::run(Until until) {
  if (source_.isProgram())
    return runFromProgram(until);
  timed("parse", [&] { syntax = source_.syntax(); });
  ast = syntax->module.overlay();
  diags_.take(syntax->findings, syntax->errors);
  if (until == Until::Parsed)
    return !diags_.hasErrors();
  checkDimNames();
  model.constants = takeConfig(ast, options_, diags_);
  if (!check(until) || until <= Until::Program)
    return !diags_.hasErrors();
  runFrom(until);
  return true;
}

void Compilation::makeContext() {
  mlir::DialectRegistry registry;
  ops::registerDialects(registry);
  // Modules here are small: threads would cost more than they save.
  context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
}

bool Compilation::runFromProgram(Until until) {
  makeContext();
  std::string error;
  {
    mlir::ScopedDiagnosticHandler handler(context.get(), [&](mlir::Diagnostic &diagnostic) {
      error += ir::placeOf(diagnostic.getLocation()) + ": " + diagnostic.str() + "\n";
      return mlir::success();
    });
    program = mlir::parseSourceString<mlir::ModuleOp>(
        llvm::StringRef(source_.text()), mlir::ParserConfig(context.get()), source_.name());
  }
  if (!program)
    throw UserError("no Program: " + error);
  if (!(*program).getOps<ir::BlockOp>().empty())
    throw UserError(source_.name() + ": its tensor code is formed into blocks already; give a "
                                     "program as --emit=program prints it");
  if (auto dims = (*program)->getAttrOfType<mlir::DictionaryAttr>("sheaf.dims"))
    for (mlir::NamedAttribute dim : dims)
      if (auto value = mlir::dyn_cast<mlir::IntegerAttr>(dim.getValue()))
        model.dims[dim.getName().str()] = value.getInt();
  prepare();
  if (until > Until::Program)
    runFrom(until);
  return true;
}

void Compilation::prepare() {
  MlirErrors errors(*context);
  passes::PassReport report;
  mlir::LogicalResult result = passes::prepareProgram(*program, options_.entry, report);
  if (!report.name.empty())
    note(report);
  if (mlir::failed(result))
    errors.raise("the pass " + report.name + " failed");
}

void Compilation::note(passes::PassReport &report) {
  times.push_back({"  " + report.name, report.ms});
  for (passes::Remark &remark : report.remarks)
    remarks.push_back({report.name, ir::placeOf(remark.where), std::move(remark.text)});
}

void Compilation::runFrom(Until until) {
  timed("passes", [&] { runPasses(); });
  if (until == Until::Blocks)
    return;
  timed("plan kernels", [&] { planKernels(); });
  timed("emit host code", [&] { emitHost(); });
  if (until == Until::Linked)
    makeCode();
  else
    timed("emit kernels", [&] { emitKernels(); });
}

void Compilation::checkDimNames() const {
  std::string declared;
  std::set<std::string> names;
  for (size_t file = 0; file < ast.fileCount(); ++file)
    for (const Decl *decl : ast.declsOf(file))
      if (const auto *dim = decl->as<DimDecl>()) {
        names.insert(dim->name.name);
        declared += (declared.empty() ? "" : ", ") + dim->name.name;
      }
  for (const auto &[name, value] : options_.dims)
    if (!names.contains(name))
      throw UserError(source_.name() + ": the model declares no dim '" + name + "'" +
                      (declared.empty() ? "" : "; its dims are " + declared));
}

bool Compilation::check(Until until) {
  bool generate = until > Until::Checked;
  CheckOptions options;
  options.dims = options_.dims;
  options.entry = options_.entry;
  options.requireDimValues = until > Until::Entry;
  options.requireEntry = generate;
  std::set<std::string> unknown;
  for (const std::string &dim : dimsWithoutValue(ast, options)) {
    std::optional<std::string> vocabulary = vocabularyOfDim(dim);
    if (!vocabulary)
      unknown.insert(dim);
    else if (auto size = options_.vocabularySizes.find(*vocabulary);
             size != options_.vocabularySizes.end())
      options.dims[dim] = size->second;
  }
  CheckedModule checked = timed("check", [&] { return sheaf::check(ast, options, diags_); });
  for (const DeclaredDim &dim : checked.dims) {
    if (dim.value)
      model.dims[dim.name] = *dim.value;
    if (std::optional<std::string> vocabulary = vocabularyOfDim(dim.name))
      vocabularies.insert(*vocabulary);
  }
  for (const std::string &name : checked.vocabularies())
    vocabularies.insert(name);
  // Data that make the vocabulary are not read yet. Any size will do for the entry's types.
  if (until == Until::Entry)
    for (DeclaredDim &dim : checked.dims)
      if (!dim.value && !unknown.contains(dim.name))
        dim.value = 1;
  if (!checked.ok || diags_.hasErrors()) // the parser's
    return false;
  // What a call's extents or a layer's dims do not allow is found only with their numbers.
  bool isWhole = checked.findFunction(options_.entry) &&
                 std::all_of(checked.dims.begin(), checked.dims.end(),
                             [](const DeclaredDim &dim) { return dim.value.has_value(); });
  if (!generate && !isWhole)
    return true;
  if (const FnInfo *entry = checked.findFunction(options_.entry);
      entry && entry->emits && options_.training) {
    diags_.error(entry->decl->emits->range,
                 "'" + entry->name + "' emits, so it cannot be a loss that is trained",
                 "let a function that emits nothing compute it");
    return false;
  }

  timed("generate program", [&] {
    makeContext();
    MlirErrors errors(*context);
    program = until == Until::Entry
                  ? generateSignature(checked, *context, options_.entry, diags_)
                  : generateProgram(checked, *context, options_.entry, diags_, options_.dropout);
    if (!program && !diags_.hasErrors())
      errors.raise("the program could not be generated");
  });
  if (program && until != Until::Entry)
    prepare();
  return static_cast<bool>(program);
}

void Compilation::runPasses() {
  if (options_.inputGradients && !options_.training)
    throw UserError("gradients of inputs are for models that are compiled for training");
  MlirErrors errors(*context);
  blocks = program->clone();
  std::vector<passes::PassReport> reports;
  bool isBf16 = options_.precision == Precision::Bf16;
  // After autocast all arithmetic is settled, and the oracle can still interpret the program.
  auto afterPass = [&](std::string_view pass, mlir::ModuleOp module) {
    if (isBf16 && pass == "autocast")
      rounded = module.clone();
    if (options_.afterPass)
      options_.afterPass(pass, module);
    checkStop();
  };
  mlir::LogicalResult result =
      passes::runPipeline(*blocks,
                          {options_.entry, options_.without, options_.training,
                           options_.inputGradients, isBf16, afterPass},
                          reports);
  for (passes::PassReport &report : reports)
    note(report);
  if (mlir::failed(result))
    errors.raise("the pass " + (reports.empty() ? "?" : reports.back().name) + " failed");
}

void Compilation::chooseTarget() {
  const kernels::Backend *backend = backends::find(options_.target);
  if (!backend) {
    std::string names;
    for (const Target &known : targets())
      names += (names.empty() ? "" : ", ") + known.name;
    throw UserError("there is no target '" + options_.target + "', only " + names);
  }
  target = target::detect(options_.targetCpu, options_.targetCaches);
  generator = backend->begin({target, options_.without, options_.numericClass});
}

void Compilation::planKernels() {
  MlirErrors errors(*context);
  if (options_.training && options_.numericClass != kernels::NumericClass::Exact)
    throw UserError("training keeps the order of sums: numeric class any is for inference");
  chooseTarget();
  // Before libraries are loaded: what it keeps is known by the libraries of this program.
  stored_ = std::make_unique<StoredCode>(options_, target);
  std::vector<std::string> keys;
  for (auto block : blocks->getOps<ir::BlockOp>()) {
    checkStop();
    descriptions_.push_back(options_.target + ' ' + generator->describeCode(block));
    keys.push_back(stored_->tuningKey(descriptions_.back()));
  }
  if (!options_.tunings && !options_.without.contains(kTunedSwitch))
    stored_->findTunings(keys);
  auto tuningOf = [&](const std::string &key) {
    if (!options_.tunings)
      return stored_->tuned(key).value_or(TunedKernel()).tuning;
    auto given = options_.tunings->find(key);
    return given == options_.tunings->end() ? kernels::Tuning() : given->second;
  };
  for (auto [block, key] : llvm::zip(blocks->getOps<ir::BlockOp>(), keys)) {
    checkStop();
    kernels.push_back(generator->plan(block, tuningOf(key)));
  }
}

std::string Compilation::tilingWith(size_t kernel, const kernels::Tuning &tuning) const {
  return generator->plan(kernels[kernelNumbers_[kernel]].block, tuning).tiling;
}

void Compilation::emitHost() {
  MlirErrors errors(*context);
  host::KernelInstances instances(*blocks);
  host::DescribedProgram described{*blocks, options_.entry, instances,
                                   kernels, *generator,     options_.training};
  model.name = std::filesystem::path(source_.name()).stem().string();
  kernelNumbers_ = host::describeProgram(described, model);
  std::set<std::string> values;
  blocks->walk([&](ir::ParamRefOp ref) {
    if (!ref->getParentOfType<ir::BlockOp>())
      values.insert(ref.getParam().str());
  });
  for (rt::ParamDesc &param : model.params)
    param.isValue = values.contains(param.name);
  model.inputGradients = options_.training && options_.inputGradients;
  code.emplace_back();
  code.back().passes = IrPasses::O1;
  code.back().context = std::make_unique<llvm::LLVMContext>();
  code.back().module = std::make_unique<llvm::Module>("host", *code.back().context);
  host::HostCode host = host::emitHost({*blocks, options_.entry, instances, kernels, model.params},
                                       *code.back().module);
  host::describeHost(described, host, model);
  entrySymbol_ = std::move(host.entrySymbol);
  foldSymbol_ = std::move(host.foldSymbol);
  readPaths = std::move(host.readPaths);
  describeBlocks(instances);
}

void Compilation::emitKernels() {
  MlirErrors errors(*context);
  kernelModules.push_back(generator->emit(kernels, *context));
  if (!kernelModules.back())
    errors.raise("the kernels could not be emitted");
  if (keepKernels)
    return;
  code.push_back(generator->lower(*kernelModules.back()));
  if (!code.back().module)
    errors.raise("the kernels could not be lowered");
}

void Compilation::makeCode() {
  MlirErrors errors(*context);
  if (!options_.runsElsewhere) {
    target::checkRunsHere(target);
    generator->checkRunsHere();
  }
  StoredCode &stored = *stored_;
  std::vector<std::string> keys;
  timed("look up code", [&] {
    keys.push_back(stored.hostKey(*code.front().module));
    for (size_t i = 0; i < kernels.size(); ++i)
      keys.push_back(stored.kernelKey(descriptions_[i], kernels[i].tuning));
    stored.find(keys);
  });
  std::vector<std::string> missing;
  if (!stored.has(keys.front()))
    missing.push_back(keys.front());
  else
    code.clear();
  timed("emit kernels", [&] {
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string &key = keys[i + 1];
      if (stored.has(key) || llvm::is_contained(missing, key))
        continue;
      checkStop();
      missing.push_back(key);
      kernels::Kernel kernel = kernels[i];
      kernel.symbol = StoredCode::kKernelSymbol;
      mlir::OwningOpRef<mlir::ModuleOp> module = generator->emit(kernel, *context);
      if (!module)
        errors.raise("the kernels could not be emitted");
      code.push_back(generator->lower(*module));
      if (!code.back().module)
        errors.raise("the kernels could not be lowered");
    }
  });
  timed("generate code", [&] {
    std::vector<ObjectCode> objects =
        compileModules(std::move(code), target, options_.threads, options_.stop);
    code.clear();
    checkStop();
    for (size_t i = 0; i < objects.size(); ++i)
      stored.add(missing[i], std::move(objects[i]));
  });
  timed("keep code", [&] { stored.keep(); });
  storeUse = stored.use();
  timed("link code", [&] {
    std::vector<ObjectCode> objects;
    for (const std::string &key : keys)
      objects.push_back(stored.code(key));
    jit = std::make_unique<Jit>(objects);
    setAddresses();
  });
}

void Compilation::setAddresses() {
  model.frameBytes = jit->largestFrame(0);
  model.entry.fn = reinterpret_cast<rt::EntryFn>(jit->address(0, entrySymbol_));
  if (!foldSymbol_.empty())
    model.foldWeights = reinterpret_cast<rt::EntryFn>(jit->address(0, foldSymbol_));
  for (size_t i = 0; i < model.kernels.size(); ++i)
    generator->setCode(model, i, jit->address(kernelNumbers_[i] + 1, StoredCode::kKernelSymbol));
  if (model.training) {
    generator->addRuntimeKernels(model);
    describeRuntimeKernels();
  }
}

} // namespace sheaf::driver
