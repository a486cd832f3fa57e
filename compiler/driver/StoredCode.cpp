//===- StoredCode.cpp - Compiled code of earlier starts -------------------===//
#include "compiler/driver/StoredCode.h"

#include "compiler/driver/Pipeline.h"
#include "compiler/target/Caches.h"
#include "compiler/target/Features.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

#include <charconv>

#include <elf.h>
#include <link.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

bool holdsCompiler(const dl_phdr_info &object) {
  auto here = reinterpret_cast<ElfW(Addr)>(&holdsCompiler);
  for (const ElfW(Phdr) &segment : llvm::ArrayRef(object.dlpi_phdr, object.dlpi_phnum))
    if (segment.p_type == PT_LOAD && here - object.dlpi_addr - segment.p_vaddr < segment.p_memsz)
      return true;
  return false;
}

/// The names of the libraries that a loaded program or library was linked with.
std::vector<llvm::StringRef> librariesOf(const dl_phdr_info &object) {
  std::vector<llvm::StringRef> names;
  for (const ElfW(Phdr) &segment : llvm::ArrayRef(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type != PT_DYNAMIC)
      continue;
    const auto *begin = reinterpret_cast<const ElfW(Dyn) *>(object.dlpi_addr + segment.p_vaddr);
    const char *texts = nullptr;
    for (const ElfW(Dyn) *entry = begin; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_STRTAB)
        texts = reinterpret_cast<const char *>(entry->d_un.d_ptr);
    for (const ElfW(Dyn) *entry = begin; texts && entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_NEEDED)
        names.push_back(texts + entry->d_un.d_val);
  }
  return names;
}

/// The build ids of the program or library that holds the compiler and of those that it computes
/// with: LLVM may be one of them, and LLVM computes constants with the C library. What else a
/// process has loaded does not count. Empty when one of them has none.
const std::string &compilerIdentity() {
  static const std::string identity = [] {
    struct Object {
      llvm::StringRef name;
      std::string id;
    };
    struct {
      std::vector<Object> objects;
      std::string own;
      bool isProgram = false;
      std::vector<llvm::StringRef> libraries;
    } found;
    dl_iterate_phdr(
        [](dl_phdr_info *object, size_t, void *out) {
          auto &all = *static_cast<decltype(found) *>(out);
          llvm::StringRef path = object->dlpi_name;
          std::string id = llvm::toHex(buildId(*object));
          if (holdsCompiler(*object)) {
            all.own = id;
            all.isProgram = path.empty();
            all.libraries = librariesOf(*object);
          } else if (!path.contains("linux-vdso")) { // the kernel's part computes nothing
            all.objects.push_back({path.substr(path.rfind('/') + 1), id});
          }
          return 0;
        },
        &found);
    std::vector<std::string> ids = {found.own};
    for (const Object &object : found.objects)
      if (found.isProgram || llvm::is_contained(found.libraries, object.name))
        ids.push_back(object.id);
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

/// What a tuning is good for beyond what code is made for: the processor that it was timed on, by
/// its own name, and its caches.
const std::string &machineIdentity() {
  static const std::string identity = [] {
    std::string text;
#if defined(__x86_64__)
    for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
      unsigned words[4] = {};
      if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]))
        text.append(reinterpret_cast<const char *>(words), sizeof words);
    }
#endif
    rt::CacheSizes caches = target::cachesOfThisMachine();
    text += fmt::format(" {} {}", caches.l1, caches.l2);
    return text;
  }();
  return identity;
}

store::Options optionsOf(const CompileOptions &options) {
  store::Options chosen = options.store;
  // Code of another build could not be told from that of this one.
  if (!StoredCode::canKeep())
    chosen.directory.clear();
  return chosen;
}

} // namespace

store::Bytes TunedKernel::bytes() const {
  std::string text = fmt::format("{} ratio {:.4f} {:.4f} {:.4f}", tuning.text(), ratio, low, high);
  return {text.begin(), text.end()};
}

std::optional<TunedKernel> TunedKernel::parse(const store::Bytes &bytes) {
  std::string text(bytes.begin(), bytes.end());
  size_t middle = text.find(" ratio ");
  if (middle == std::string::npos)
    return std::nullopt;
  std::optional<kernels::Tuning> tuning = kernels::Tuning::parse(text.substr(0, middle));
  if (!tuning)
    return std::nullopt;
  TunedKernel tuned{.tuning = *tuning};
  const char *at = text.data() + middle + 6, *end = text.data() + text.size();
  for (double *value : {&tuned.ratio, &tuned.low, &tuned.high}) {
    if (at == end || *at != ' ')
      return std::nullopt;
    auto [next, error] = std::from_chars(at + 1, end, *value);
    if (error != std::errc() || !(*value > 0))
      return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(tuned) : std::nullopt;
}

bool StoredCode::canKeep() { return !compilerIdentity().empty(); }

StoredCode::StoredCode(const CompileOptions &options, const rt::Target &target)
    : target_(target), store_(optionsOf(options)) {}

std::string StoredCode::hostKey(const llvm::Module &module) const {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  out << target_.architecture << ' ' << target_.cpu << ' '
      << target::featureString(target_.features) << '\n';
  llvm::WriteBitcodeToFile(module, out);
  return digest("host", text);
}

std::string StoredCode::kernelKey(const std::string &description,
                                  const kernels::Tuning &tuning) const {
  return digest("kernel", tuning.text() + "\n" + description);
}

std::string StoredCode::tuningKey(const std::string &description) const {
  return digest("tuning", machineIdentity() + "\n" + description);
}

void StoredCode::findTunings(const std::vector<std::string> &keys) {
  for (const auto &[key, value] : store_.peek(keys))
    if (std::optional<TunedKernel> tuned = TunedKernel::parse(value))
      tuned_[key] = *tuned;
}

std::optional<TunedKernel> StoredCode::tuned(const std::string &key) const {
  auto found = tuned_.find(key);
  return found == tuned_.end() ? std::nullopt : std::optional(found->second);
}

void StoredCode::find(std::vector<std::string> keys) {
  llvm::sort(keys);
  keys.erase(llvm::unique(keys), keys.end());
  size_t wanted = keys.size();
  // What is used together stays together: all of it counts as used by this start.
  for (const auto &[key, tuned] : tuned_)
    keys.push_back(key);
  code_ = store_.find(keys);
  for (const auto &[key, tuned] : tuned_)
    code_.erase(key);
  found_ = code_.size();
  made_ = wanted - found_;
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

store::Use StoredCode::use() const {
  store::Use use = store_.use();
  use.found = found_;
  use.made = made_;
  return use;
}

} // namespace sheaf::driver
