//===- Compiler.h - From source text to code in memory ----------*- C++ -*-===//
//
// The whole compiler behind one header, free of MLIR and LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_DRIVER_COMPILER_H
#define SHEAF_COMPILER_DRIVER_COMPILER_H

#include "compiler/codegen/Jit.h"
#include "compiler/driver/MemoryFormula.h"
#include "compiler/driver/Phases.h"
#include "compiler/frontend/Diagnostics.h"
#include "compiler/kernels/NumericClass.h"
#include "compiler/kernels/ProductForm.h"
#include "compiler/kernels/Tuning.h"
#include "compiler/store/Store.h"
#include "runtime/cpu/target.h"
#include "runtime/io/model_config.h"
#include "runtime/model/model.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace sheaf::driver {

/// What products of weights and attention compute in (docs/numerics.md); everything else computes
/// in f32.
enum class Precision { F32, Bf16 };

struct CompileOptions {
  /// Values of dims, instead of those in the source.
  std::map<std::string, int64_t> dims;
  /// What lies beside the weights: gives constants, and dims that have no value, their values.
  std::optional<io::ModelConfig> config;
  /// Values of constants that come with weights, instead of those in `config` (Model::constants).
  std::map<std::string, double> constants;
  /// Sizes of the vocabularies that are known, by name. A dim that stands for one (vocabularyOfDim)
  /// takes its size unless `dims` or the source give it a value.
  std::map<std::string, int64_t> vocabularySizes;
  /// The function that an instance is an argument list of.
  std::string entry = "main";
  /// Whether dropout drops, as in training.
  bool dropout = false;
  /// Whether the model is made for training: its kernels have others that go back.
  bool training = false;
  /// Whether in training the float tensors in the entry's arguments have gradients, too.
  bool inputGradients = false;
  /// Optimisations to leave out, by name (optimisationNames).
  std::set<std::string> without;
  /// What kernels are made for: the name of a Target.
  std::string target = "cpu";
  /// Of host code: `host`, or the name of a CPU as target::detect() takes it.
  std::string targetCpu = "host";
  /// Of what plans are made for; 0: as target::detect() finds them.
  rt::CacheSizes targetCaches;
  /// Whether the code may be for a machine that this one is not. Then nothing of it may be run.
  bool runsElsewhere = false;
  Precision precision = Precision::F32;
  /// Whether libraries may compute products. Not of a model made for training.
  kernels::NumericClass numericClass = kernels::NumericClass::Exact;
  /// Threads that generate code.
  unsigned threads = 2;
  /// Where compiled code is kept from one start to the next.
  store::Options store;
  /// How kernels are tuned, by BlockInfo::tuningKey, instead of as the store says.
  std::optional<std::map<std::string, kernels::Tuning>> tunings;
  /// Told of every pass that ran, and of the module after it. May be empty.
  std::function<void(std::string_view pass, mlir::ModuleOp module)> afterPass;
  /// When it is asked for, from any thread, a compilation throws Stopped at the next pass, kernel
  /// or module of code.
  std::stop_token stop;
};

/// A compilation was given up.
struct Stopped : std::exception {
  const char *what() const noexcept override { return "the compilation was stopped"; }
};

/// An optimisation that can be left out.
struct Optimisation {
  std::string name;
  std::string meaning;
  /// What it is: a pass, a part of one (pass), kernels', who computes products (library), or
  /// tuning.
  std::string kind;
};

/// Every name that CompileOptions::without may hold.
std::vector<Optimisation> optimisations();

/// What a pass did, or did not do and why.
struct Remark {
  std::string pass;
  std::string place; ///< file:line
  std::string text;
};

struct PhaseTime {
  std::string name;
  double ms = 0;
};

/// What must be known of a model before its data can be read: the types of the entry's arguments.
/// Extents that depend on a vocabulary's size are not known yet.
struct EntryTypes {
  rt::TypeTable types;
  rt::EntryDesc entry;
  /// Vocabularies whose size is given by a dim: its name and value.
  std::map<std::string, std::pair<std::string, int64_t>> vocabularyDims;
  /// Every vocabulary that a type or a dim of the file names, whether the entry reads it or not.
  std::set<std::string> vocabularies;
};

/// The vocabulary whose size a dim of this name stands for: `vocab` that of `token`, `tag_vocab`
/// that of `token<tag>`.
std::optional<std::string> vocabularyOfDim(const std::string &dim);

/// Names of the vocabularies that the entry's arguments are read with.
std::set<std::string> argumentVocabularies(const EntryTypes &entry);

/// The dims that a model and the files that it uses declare. What is wrong with one that does not
/// parse is told when it is compiled.
std::vector<std::string> declaredDims(const SourceFile &source);

/// The functions of a model's own file, in which a run begins; none if it does not parse.
std::optional<std::vector<std::string>> declaredFunctions(const SourceFile &source);

/// How much of something belongs to a line of the source.
struct LineShare {
  std::string place; ///< file:line
  double share = 0;  ///< 0 to 1
};

/// How much of a kernel's work belongs to a layer and a way of calls.
struct PartShare {
  /// `encoder.layer.1.output.dense`: the layer of the weights that an operator takes, or in whose
  /// function it stands; a parameter outside of layers itself; empty: none.
  std::string layer;
  std::vector<std::string> calls; ///< functions from the entry inwards, as their file names them
  double share = 0;               ///< 0 to 1
};

/// Who was asked to compute a product of a block, and what they said.
struct DispatchInfo {
  std::string place; ///< file:line
  std::string what;  ///< operator and extents
  std::vector<kernels::Verdict> verdicts;
};

/// A kernel of the model as people want to know it; number i speaks of Model::kernels[i].
struct BlockInfo {
  std::string name;                   ///< by its layers or weights, or its function and operators
  std::string symbol;                 ///< of the block in the Program, and which instance of it
  std::string place;                  ///< file:line of its first operator
  std::vector<std::string> operators; ///< in order, by name
  std::vector<std::string> weights;   ///< parameters that it shares with the whole batch
  std::vector<std::string> remarks;   ///< what was fused, tiled, packed; slow paths and why
  std::vector<DispatchInfo> dispatch; ///< of each of its products
  std::string tiling;                 ///< kernels::Kernel::tiling
  std::string tuningKey; ///< of what is chosen for it; equal for equal blocks; of the runtime's own
                         ///< kernels empty
  bool tuned = false;    ///< the store held a choice for it
  double productWork = 0; ///< what of the kernel's work are products: an estimate, 0 to 1
  std::optional<kernels::ProductForm> productForm; ///< kernels::Kernel::productForm
  /// The kernel's work by line, the largest first: an estimate from FLOP and elements.
  std::vector<LineShare> lines;
  /// The same by layer and calls; of a kernel of several places, as much of each.
  std::vector<PartShare> parts;
};

/// What host code does at a place of the source: records, reads, calls.
struct SiteInfo {
  std::string place;              ///< file:line
  std::string what;               ///< and which block or function
  std::vector<std::string> notes; ///< what is shared, phase and depth, what is batched with what
};

/// A function as host code runs it, after inlining and specialising.
struct FunctionInfo {
  std::string name;
  std::string place;
  std::vector<std::string> notes;
  std::vector<SiteInfo> sites;
};

/// A compiled model with everything that explains it. Immutable; may be shared by sessions.
class CompiledModel {
public:
  ~CompiledModel();

  /// What a session runs. Its code lives as long as this object.
  const rt::Model &model() const;

  /// The program as the front end made it: what the oracle interprets.
  mlir::ModuleOp program() const;
  /// The same with the products that compute in bf16. `program()` where there are none.
  mlir::ModuleOp roundedProgram() const;
  /// By parameter: what else the source says that files of weights call it.
  std::map<std::string, std::vector<std::string>> storedNames() const;
  /// By the places of Model::readPlaces, ir::pathText of where they are in `program()`.
  const std::vector<std::string> &readPaths() const;
  Precision precision() const;
  /// The numeric class of its products (docs/numerics.md), as artefacts tell it.
  std::string numerics() const;
  /// The libraries that compute products, by name: its bits are of their numeric class.
  std::set<std::string> libraries() const;

  const std::vector<Remark> &remarks() const;
  const std::vector<BlockInfo> &blocks() const;
  /// What the tiling of a kernel, one that has a tuningKey, would be with a tuning.
  std::string tilingWith(size_t kernel, const kernels::Tuning &tuning) const;
  /// Function by function what is done where. Made when it is asked for.
  std::vector<FunctionInfo> functions() const;
  /// What its inference takes at most. Made when it is asked for. With `most`, of instances whose
  /// sizes of these names are no larger.
  MemoryFormula memoryFormula(const std::map<std::string, double> &most = {}) const;
  const std::vector<PhaseTime> &times() const;
  const rt::Target &target() const;
  /// The generated code, as it is loaded.
  const rt::LoadedCode &code() const;
  /// How much of the code came from the store.
  const store::Use &storeUse() const;
  /// Bytes of it.
  uint64_t codeBytes() const { return code().layout().bytes(); }

private:
  friend std::unique_ptr<CompiledModel> compile(const SourceFile &, const CompileOptions &,
                                                Diagnostics &);
  CompiledModel();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether tensors of the program are 16-bit floats.
bool hasNarrowFloats(const CompiledModel &model);
/// Whether they are, or factors of products are rounded to such.
bool roundsTo16Bits(const CompiledModel &model);

/// Types and shapes only. False when `diags` has errors.
bool check(const SourceFile &source, const CompileOptions &options, Diagnostics &diags);

/// The entry's types. Null when `diags` has errors.
std::unique_ptr<EntryTypes> inspect(const SourceFile &source, const CompileOptions &options,
                                    Diagnostics &diags);

/// Null when `diags` has errors. Throws UserError for options that do not fit the model, and
/// InternalError when a pass breaks its promise.
std::unique_ptr<CompiledModel> compile(const SourceFile &source, const CompileOptions &options,
                                       Diagnostics &diags);

/// Writes what each phase and each pass made, and of each kernel plan, IR, LLVM IR and assembly, as
/// files of a directory (docs/reports.md). Throws UserError when one cannot be written.
void dump(const SourceFile &source, const CompileOptions &options, const std::string &directory,
          Diagnostics &diags);

/// What kernels can be made for: a back end (compiler/backends).
struct Target {
  std::string name;
  std::string description;
  std::string onThisMachine; ///< what of it there is here, or why nothing
};

/// The first is the default.
std::vector<Target> targets();

/// A pass over Programs.
struct Pass {
  std::string name;
  std::string description;
  bool required = false;          ///< it cannot be left out
  std::vector<std::string> parts; ///< what of it can be left out by a name of its own
};

/// An operator that programs may call.
struct Operator {
  std::string name;
  std::string signature; ///< `softmax(x, axis=-1)`
  std::string description;
  std::string family;   ///< operators whose records stand together
  std::string gradient; ///< how it is differentiated: rule, expansion, rows, none
  bool expands = false; ///< kernels do not know it: others are put in its place
};

/// By name.
std::vector<Operator> operators();

/// Each pass once, in the order of their first runs.
std::vector<Pass> passes();

/// The text of one phase. Empty when `diags` has errors.
std::string emit(const SourceFile &source, const CompileOptions &options, Phase phase,
                 Diagnostics &diags);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_COMPILER_H
