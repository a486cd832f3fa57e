//===- Features.h - What LLVM may use of a processor ------------*- C++ -*-===//
//
// LLVM is given the least processor of an architecture and, one by one, the features that
// runtime/cpu/cpu.h can ask a machine for. The name of a processor only says for which one code is
// scheduled. So what LLVM knows beyond is never used.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_TARGET_FEATURES_H
#define SHEAF_COMPILER_TARGET_FEATURES_H

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class MCSubtargetInfo;
class Target;
class Triple;
} // namespace llvm

namespace sheaf::target {

/// Makes LLVM's code generators for all architectures known.
void initialiseTargets();

/// LLVM's code generator for a triple of x86-64 or AArch64. Throws InternalError.
const llvm::Target &codeGenerator(const llvm::Triple &triple);

/// LLVM's name of the processor that all others of the architecture are more than.
const char *leastProcessor(const llvm::Triple &triple);

/// As LLVM reads them, beside leastProcessor().
std::string featureString(const std::vector<std::string> &features);

/// What LLVM knows of the least processor with these features, scheduled for `tuning` if any.
std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const llvm::Triple &triple,
                                                 const std::vector<std::string> &features,
                                                 const std::string &tuning = "");

/// Whether LLVM knows a processor of that name that runs code of the triple.
bool isProcessor(const llvm::Triple &triple, const std::string &cpu);

/// The processor to schedule code for where `cpu` is wanted: the least one where LLVM knows no such
/// processor, or cannot schedule for it without using what it has.
std::string tuningFor(const llvm::Triple &triple, const std::string &cpu);

/// Of what LLVM says that a processor has, what a machine can be asked for.
std::vector<std::string> featuresOf(const llvm::Triple &triple, const std::string &cpu);

/// The features without those that LLVM takes to imply another that is not among them, sorted.
std::vector<std::string> withoutUnmet(const llvm::Triple &triple,
                                      std::vector<std::string> features);

} // namespace sheaf::target

#endif // SHEAF_COMPILER_TARGET_FEATURES_H
