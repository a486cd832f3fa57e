//===- StoredCode.cpp - Compiled code of earlier starts -------------------===//
#include "compiler/driver/StoredCode.h"

#include "compiler/driver/Pipeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <elf.h>
#include <link.h>

namespace sheaf::driver {

namespace {

/// The build id that the linker wrote into a loaded program or library.
llvm::StringRef buildId(const dl_phdr_info &object) {
  for (const ElfW(Phdr) &segment : llvm::ArrayRef(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE)
      continue;
    llvm::StringRef notes(reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr),
                          segment.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      const auto &note = *reinterpret_cast<const ElfW(Nhdr) *>(notes.data());
      notes = notes.drop_front(sizeof note);
      llvm::StringRef name = notes.take_front(note.n_namesz);
      notes = notes.drop_front(std::min<size_t>(notes.size(), llvm::alignTo(note.n_namesz, 4)));
      llvm::StringRef value = notes.take_front(note.n_descsz);
      notes = notes.drop_front(std::min<size_t>(notes.size(), llvm::alignTo(note.n_descsz, 4)));
      if (note.n_type == NT_GNU_BUILD_ID && name == llvm::StringRef(ELF_NOTE_GNU, 4))
        return value;
    }
  }
  return {};
}

/// The build ids of this program and of all libraries that it runs with: LLVM is one of them, and
/// LLVM computes constants with the C library. Empty when one of them has none.
const std::string &compilerIdentity() {
  static const std::string identity = [] {
    std::vector<std::string> ids;
    dl_iterate_phdr(
        [](dl_phdr_info *object, size_t, void *out) {
          llvm::StringRef name = object->dlpi_name;
          // The kernel's part computes nothing.
          if (!name.contains("linux-vdso"))
            static_cast<std::vector<std::string> *>(out)->push_back(llvm::toHex(buildId(*object)));
          return 0;
        },
        &ids);
    return llvm::is_contained(ids, "") ? std::string() : llvm::join(ids, "\n");
  }();
  return identity;
}

std::string digest(llvm::StringRef kind, llvm::StringRef text) {
  llvm::SHA256 hash;
  hash.update(kind);
  hash.update("\n" + compilerIdentity() + "\n");
  hash.update(text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

store::Options optionsOf(const CompileOptions &options) {
  store::Options chosen = options.store;
  // Code of another build could not be told from that of this one.
  if (compilerIdentity().empty())
    chosen.directory.clear();
  return chosen;
}

} // namespace

StoredCode::StoredCode(const CompileOptions &options, const kernels::Target &target)
    : target_(target), without_(options.without), store_(optionsOf(options)) {}

std::string StoredCode::hostKey(const llvm::Module &module) const {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  out << target_.cpu << ' ' << target_.features << '\n';
  llvm::WriteBitcodeToFile(module, out);
  return digest("host", text);
}

std::string StoredCode::kernelKey(const kernels::Kernel &kernel) const {
  return digest("kernel", kernels::describeCode(kernel, target_, without_));
}

void StoredCode::find(std::vector<std::string> keys) {
  llvm::sort(keys);
  keys.erase(llvm::unique(keys), keys.end());
  code_ = store_.find(keys);
}

void StoredCode::add(const std::string &key, ObjectCode code) {
  code_[key] = std::move(code);
  added_.push_back(key);
}

void StoredCode::keep() {
  if (added_.empty())
    return;
  store::Values values;
  for (const std::string &key : added_)
    values.emplace(key, code_.at(key));
  store_.keep(values);
}

} // namespace sheaf::driver
