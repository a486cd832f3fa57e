//===- Compiler.cpp - From source text to code in memory ------------------===//
#include "compiler/driver/Compiler.h"

#include "compiler/backends/Backends.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/driver/Sites.h"
#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Checker.h"
#include "compiler/frontend/Parser.h"
#include "compiler/model/ModelTypes.h"
#include "compiler/ops/Op.h"
#include "compiler/passes/Pipeline.h"
#include "runtime/model/members.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace sheaf::driver {

std::vector<Optimisation> optimisations() {
  std::vector<Optimisation> all;
  for (const ir::Switch &entry : passes::allSwitches())
    all.push_back({std::string(entry.name), std::string(entry.meaning), "pass"});
  // Back ends may have switches of one name, for what each does in its way: the first says what.
  std::set<std::string_view> known;
  for (const kernels::Backend *backend : backends::all())
    for (const ir::Switch &entry : backend->switches())
      if (known.insert(entry.name).second)
        all.push_back({std::string(entry.name), std::string(entry.meaning),
                       entry.computesProducts ? "library" : "kernels"});
  all.push_back({kTunedSwitch, "cuts kernels as 'sheaf tune' chose, where the store holds choices",
                 "tuning"});
  return all;
}

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const kernels::Backend *backend : backends::all())
    all.push_back({std::string(backend->name()), std::string(backend->description()),
                   backend->onThisMachine()});
  return all;
}

static std::string_view gradientName(ops::Gradient::Kind kind) {
  switch (kind) {
  case ops::Gradient::Rule:
    return "rule";
  case ops::Gradient::Expansion:
    return "expansion";
  case ops::Gradient::Rows:
    return "rows";
  case ops::Gradient::Unstated:
  case ops::Gradient::None:
  case ops::Gradient::Untrained:
    break;
  }
  return "none";
}

std::vector<Operator> operators() {
  std::vector<Operator> all;
  for (const ops::Op &record : ops::OpTable::get().all())
    if (!record.internal)
      all.push_back({.name = record.name,
                     .signature = record.signature(),
                     .description = record.summary,
                     .family = std::string(record.family),
                     .gradient = std::string(gradientName(record.gradient.kind)),
                     .expands = std::holds_alternative<ops::Expand>(record.batch)});
  return all;
}

std::vector<Pass> passes() {
  std::vector<Pass> all;
  for (const passes::PassRecord &record : passes::allPasses()) {
    Pass &pass = all.emplace_back();
    pass.name = record.name;
    pass.description = record.description;
    pass.required = record.required;
    for (const ir::Switch &part : record.switches)
      pass.parts.emplace_back(part.name);
  }
  return all;
}

std::optional<std::string> vocabularyOfDim(const std::string &dim) {
  constexpr std::string_view suffix = "_vocab";
  if (dim == "vocab")
    return "";
  if (dim.size() > suffix.size() && dim.ends_with(suffix))
    return dim.substr(0, dim.size() - suffix.size());
  return std::nullopt;
}

std::set<std::string> argumentVocabularies(const EntryTypes &entry) {
  std::set<std::string> names;
  std::vector<bool> reached = rt::reachableTypes(entry.types, entry.entry.argTypes);
  for (size_t i = 0; i < entry.types.types.size(); ++i) {
    const rt::TypeDesc &type = entry.types.types[i];
    if (reached[i] &&
        (type.kind == rt::TypeKind::Token || (type.kind == rt::TypeKind::Tensor && type.isToken)))
      names.insert(type.vocab);
  }
  return names;
}

std::vector<std::string> declaredDims(const SourceFile &source) {
  std::vector<std::string> names;
  std::shared_ptr<const Syntax> syntax = soundSyntax(source);
  for (size_t file = 0; syntax && file < syntax->module.fileCount(); ++file)
    for (const Decl *decl : syntax->module.declsOf(file))
      if (decl->is<DimDecl>())
        names.push_back(decl->name.name);
  return names;
}

std::optional<std::vector<std::string>> declaredFunctions(const SourceFile &source) {
  std::shared_ptr<const Syntax> syntax = soundSyntax(source);
  if (!syntax)
    return std::nullopt;
  std::vector<std::string> names;
  for (const Decl *decl : syntax->module.decls)
    if (decl->is<FnDecl>())
      names.push_back(decl->name.name);
  return names;
}

struct CompiledModel::Impl {
  // The compilation refers to what it was made from only while it runs.
  std::unique_ptr<Compilation> compilation;
};

CompiledModel::CompiledModel() : impl_(std::make_unique<Impl>()) {}
CompiledModel::~CompiledModel() = default;

const rt::Model &CompiledModel::model() const { return impl_->compilation->model; }
mlir::ModuleOp CompiledModel::program() const { return *impl_->compilation->program; }
std::map<std::string, std::vector<std::string>> CompiledModel::storedNames() const {
  std::map<std::string, std::vector<std::string>> names;
  for (auto param : program().getOps<ir::ParamOp>())
    if (auto stored = param->getAttrOfType<mlir::ArrayAttr>("sheaf.stored_as"))
      for (auto name : stored.getAsValueRange<mlir::StringAttr>())
        names[param.getSymName().str()].push_back(name.str());
  return names;
}

const std::vector<std::string> &CompiledModel::readPaths() const {
  return impl_->compilation->readPaths;
}
mlir::ModuleOp CompiledModel::roundedProgram() const {
  return impl_->compilation->rounded ? *impl_->compilation->rounded : program();
}
std::set<std::string> CompiledModel::libraries() const {
  return model().code ? model().code->libraries() : std::set<std::string>();
}

Precision CompiledModel::precision() const { return impl_->compilation->precision; }
std::string CompiledModel::numerics() const {
  return impl_->compilation->generator->numerics(model(), precision() == Precision::Bf16);
}
const std::vector<Remark> &CompiledModel::remarks() const { return impl_->compilation->remarks; }
const std::vector<BlockInfo> &CompiledModel::blocks() const {
  return impl_->compilation->blockInfos;
}
std::string CompiledModel::tilingWith(size_t kernel, const kernels::Tuning &tuning) const {
  return impl_->compilation->tilingWith(kernel, tuning);
}
std::vector<FunctionInfo> CompiledModel::functions() const {
  return describeSites(*impl_->compilation->blocks, impl_->compilation->blockInfos);
}
MemoryFormula CompiledModel::memoryFormula(const std::map<std::string, double> &most) const {
  return impl_->compilation->memoryFormula(most);
}
const std::vector<PhaseTime> &CompiledModel::times() const { return impl_->compilation->times; }
const rt::Target &CompiledModel::target() const { return impl_->compilation->target; }
const store::Use &CompiledModel::storeUse() const { return impl_->compilation->storeUse; }
const rt::LoadedCode &CompiledModel::code() const { return impl_->compilation->jit->code(); }

bool check(const SourceFile &source, const CompileOptions &options, Diagnostics &diags) {
  Compilation compilation(source, options, diags);
  return compilation.run(Until::Checked);
}

std::unique_ptr<EntryTypes> inspect(const SourceFile &source, const CompileOptions &options,
                                    Diagnostics &diags) {
  auto entry = std::make_unique<EntryTypes>();
  Compilation compilation(source, options, diags);
  if (!compilation.run(Until::Entry))
    return nullptr;
  host::ModelTypes types = host::describeEntry(*compilation.program, options.entry);
  entry->types = std::move(types.types);
  entry->entry = std::move(types.entry);
  for (const auto &[dim, value] : compilation.model.dims)
    if (std::optional<std::string> vocabulary = vocabularyOfDim(dim))
      entry->vocabularyDims[*vocabulary] = {dim, value};
  entry->vocabularies = compilation.vocabularies;
  for (const rt::TypeDesc &type : entry->types.types)
    if (type.kind == rt::TypeKind::Token || (type.kind == rt::TypeKind::Tensor && type.isToken))
      entry->vocabularies.insert(type.vocab);
  return entry;
}

std::unique_ptr<CompiledModel> compile(const SourceFile &source, const CompileOptions &options,
                                       Diagnostics &diags) {
  auto compilation = std::make_unique<Compilation>(source, options, diags);
  if (!compilation->run(Until::Linked))
    return nullptr;
  std::unique_ptr<CompiledModel> model(new CompiledModel());
  model->impl_->compilation = std::move(compilation);
  return model;
}

namespace {

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << '\n';
  return text;
}

std::string print(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

} // namespace

std::string emit(const SourceFile &source, const CompileOptions &options, Phase phase,
                 Diagnostics &diags) {
  Compilation compilation(source, options, diags);
  compilation.keepKernels = phase == Phase::Kernels;
  Until until = phase == Phase::Ast       ? Until::Parsed
                : phase == Phase::Program ? Until::Program
                : phase == Phase::Blocks  ? Until::Blocks
                                          : Until::Code;
  if (!compilation.run(until))
    return "";
  std::string text;
  switch (phase) {
  case Phase::Ast:
    return printModule(compilation.ast);
  case Phase::Program:
    return print(*compilation.program);
  case Phase::Blocks:
    return print(*compilation.blocks);
  case Phase::Host:
    return print(*compilation.code.front().module);
  case Phase::Kernels:
    for (auto &module : compilation.kernelModules)
      text += print(*module);
    return text;
  case Phase::Llvm:
    for (CodeModule &code : compilation.code) {
      compilerOf(code, compilation.target)->prepare(*code.module);
      text += print(*code.module);
    }
    return text;
  case Phase::Asm:
    for (CodeModule &code : compilation.code)
      text += compilerOf(code, compilation.target)->assembly(code);
    return text;
  }
  return text;
}

bool hasNarrowFloats(const CompiledModel &model) {
  auto narrow = [](mlir::Type type) {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && (tensor.getElementType().isBF16() || tensor.getElementType().isF16());
  };
  return model.program()
      .walk([&](mlir::Operation *op) {
        return llvm::any_of(op->getResultTypes(), narrow) ? mlir::WalkResult::interrupt()
                                                          : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

bool roundsTo16Bits(const CompiledModel &model) {
  return model.precision() == Precision::Bf16 || hasNarrowFloats(model);
}

} // namespace sheaf::driver
