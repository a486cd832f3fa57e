//===- Link.cpp - Object files into one code image ------------------------===//
#include "compiler/codegen/Link.h"

#include "compiler/codegen/Relocations.h"
#include "runtime/model/error.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <array>

namespace sheaf::driver {

namespace {

using Elf = llvm::object::ELF64LE;
using Object = llvm::object::ELFObjectFile<Elf>;
using llvm::object::ELFSectionRef;
using llvm::object::ELFSymbolRef;
using Asks = Architecture::Asks;

template <typename T> T unwrap(llvm::Expected<T> value) {
  if (!value)
    throw InternalError("cannot link generated code: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

/// The ranges of an image, in order.
enum Range : unsigned { Code, Constants, Addresses };

class Linker {
public:
  explicit Linker(std::span<const std::vector<uint8_t>> objects) : globals_(objects.size()) {
    for (const std::vector<uint8_t> &object : objects)
      objects_.push_back(unwrap(Object::create(
          {{reinterpret_cast<const char *>(object.data()), object.size()}, "generated code"})));
    for (const Object &object : objects_) {
      const Architecture *its = &Architecture::ofMachine(object.getELFFile().getHeader().e_machine);
      if (architecture_ && architecture_ != its)
        throw InternalError("generated code is of two architectures");
      architecture_ = its;
    }
  }

  LinkedCode run() {
    if (objects_.empty())
      throw InternalError("there is no generated code to link");
    for (size_t i = 0; i < objects_.size(); ++i)
      placeSections(i);
    for (size_t i = 0; i < objects_.size(); ++i)
      defineSymbols(i);
    for (size_t i = 0; i < objects_.size(); ++i)
      forEachRelocation(i, [&](const Site &site) { collect(site); });
    layOut();
    for (size_t i = 0; i < objects_.size(); ++i)
      forEachRelocation(i, [&](const Site &site) { apply(site); });
    for (const auto &globals : globals_) {
      auto &symbols = result_.symbols.emplace_back();
      for (const auto &[name, place] : globals)
        symbols[name] = offset(place);
    }
    return std::move(result_);
  }

private:
  /// Where something lies, before the ranges have their places.
  struct Place {
    Range range = Code;
    uint64_t offset = 0;
  };
  struct Site {
    Place place; ///< of the bytes to change
    uint32_t type;
    ELFSymbolRef symbol;
    size_t object;
    int64_t addend;
  };

  void placeSections(size_t number) {
    for (const ELFSectionRef section : objects_[number].sections()) {
      uint64_t flags = section.getFlags();
      llvm::StringRef name = unwrap(section.getName());
      // Nothing unwinds through generated code.
      if (!(flags & llvm::ELF::SHF_ALLOC) || section.getSize() == 0 || name == ".eh_frame")
        continue;
      if (section.isVirtual() ||
          ((flags & llvm::ELF::SHF_WRITE) && !name.starts_with(".data.rel.ro")))
        throw InternalError("generated code has data that can be written: " + name.str());
      Range range = (flags & llvm::ELF::SHF_EXECINSTR) ? Code
                    : (flags & llvm::ELF::SHF_WRITE)   ? Addresses
                                                       : Constants;
      std::vector<uint8_t> &bytes = contents_[range];
      bytes.resize(llvm::alignTo(bytes.size(), section.getAlignment().value()), filler(range));
      places_[{number, section.getRawDataRefImpl().p}] = {range, bytes.size()};
      llvm::StringRef data = unwrap(section.getContents());
      bytes.insert(bytes.end(), data.bytes_begin(), data.bytes_end());
    }
  }

  std::optional<Place> placeOf(size_t object, const ELFSymbolRef &symbol) {
    auto section = unwrap(symbol.getSection());
    if (section == objects_[object].section_end())
      return std::nullopt;
    auto found = places_.find({object, section->getRawDataRefImpl().p});
    if (found == places_.end())
      return std::nullopt;
    return Place{found->second.range, found->second.offset + unwrap(symbol.getValue())};
  }

  void defineSymbols(size_t number) {
    for (const ELFSymbolRef symbol : objects_[number].symbols()) {
      if (symbol.getBinding() == llvm::ELF::STB_LOCAL)
        continue;
      std::optional<Place> place = placeOf(number, symbol);
      if (place)
        globals_[number].emplace(unwrap(symbol.getName()).str(), *place);
    }
  }

  template <typename F> void forEachRelocation(size_t number, F f) {
    Object &object = objects_[number];
    for (const ELFSectionRef section : object.sections()) {
      auto target = unwrap(section.getRelocatedSection());
      if (target == object.section_end())
        continue;
      auto found = places_.find({number, target->getRawDataRefImpl().p});
      if (found == places_.end())
        continue;
      for (const llvm::object::ELFRelocationRef relocation : section.relocations())
        f(Site{{found->second.range, found->second.offset + relocation.getOffset()},
               static_cast<uint32_t>(relocation.getType()),
               ELFSymbolRef(*relocation.getSymbol()),
               number,
               unwrap(relocation.getAddend())});
    }
  }

  uint8_t filler(unsigned range) const { return range == Code ? architecture_->filler() : 0; }

  /// Finds out which words the addresses need.
  void collect(const Site &site) {
    std::string name = unwrap(site.symbol.getName()).str();
    std::optional<Place> place = placeOf(site.object, site.symbol);
    Asks asks = architecture_->asks(site.type);
    bool known = asks != Asks::Nothing && (asks != Asks::Address || site.place.range == Addresses);
    bool importable = asks == Asks::Word || asks == Asks::Call;
    if (!known || (!place && !importable))
      throw InternalError("generated code has a relocation of type " + std::to_string(site.type) +
                          " to '" + name + "'");
    if (!place) {
      if (!rt::importAddress(name))
        throw InternalError("generated code calls '" + name + "', which the runtime lacks");
      if (imports_.emplace(name, imports_.size()).second)
        result_.layout.imports.push_back(name);
      if (asks == Asks::Call)
        stubs_.emplace(name, 0);
    } else if (asks == Asks::Word) {
      tableWords_.emplace(std::pair(place->range, place->offset), 0);
    }
  }

  void layOut() {
    std::span<const uint8_t> stub = architecture_->stub();
    std::vector<uint8_t> &code = contents_[Code];
    for (auto &[name, at] : stubs_) {
      code.resize(llvm::alignTo(code.size(), stub.size()), filler(Code));
      at = code.size();
      code.insert(code.end(), stub.begin(), stub.end());
    }
    // The words of imports come first, then those of the table; what the objects brought keeps its
    // alignment after them.
    uint64_t words = imports_.size() + tableWords_.size();
    uint64_t before = llvm::alignTo(words * sizeof(uint64_t), 64);
    contents_[Addresses].insert(contents_[Addresses].begin(), before, 0);
    addressShift_ = before;
    uint64_t word = imports_.size();
    for (auto &[place, at] : tableWords_)
      at = sizeof(uint64_t) * word++;

    uint64_t begin = 0;
    for (unsigned range : {Code, Constants, Addresses}) {
      begins_[range] = begin;
      contents_[range].resize(llvm::alignTo(contents_[range].size(), architecture_->page()),
                              filler(range));
      begin += contents_[range].size();
    }
    rt::CodeLayout &layout = result_.layout;
    layout.codeBytes = contents_[Code].size();
    layout.constantBytes = contents_[Constants].size();
    layout.addressBytes = contents_[Addresses].size();
    if (begin >= uint64_t(1) << 30)
      throw InternalError("generated code is too large");
    result_.image.reserve(begin);
    for (const std::vector<uint8_t> &bytes : contents_)
      result_.image.insert(result_.image.end(), bytes.begin(), bytes.end());

    for (const auto &[name, at] : stubs_)
      architecture_->fillStub(result_.image, begins_[Code] + at, importWord(name));
    for (const auto &[place, at] : tableWords_)
      result_.layout.relocations.push_back(
          {static_cast<uint32_t>(begins_[Addresses] + at),
           static_cast<uint32_t>(offset({static_cast<Range>(place.first), place.second}))});
  }

  uint64_t offset(const Place &place) const {
    return begins_[place.range] + place.offset + (place.range == Addresses ? addressShift_ : 0);
  }
  uint64_t importWord(const std::string &name) const {
    return begins_[Addresses] + sizeof(uint64_t) * imports_.at(name);
  }

  void apply(const Site &site) {
    std::optional<Place> place = placeOf(site.object, site.symbol);
    std::string name = unwrap(site.symbol.getName()).str();
    uint64_t at = offset(site.place);
    auto addend = static_cast<uint64_t>(site.addend);
    Asks asks = architecture_->asks(site.type);
    if (asks == Asks::Address) {
      uint64_t target = offset(*place) + addend;
      if (target >= result_.image.size())
        throw InternalError("generated code holds an address outside of it");
      result_.layout.relocations.push_back(
          {static_cast<uint32_t>(at), static_cast<uint32_t>(target)});
      return;
    }
    uint64_t target;
    if (asks == Asks::Word)
      target = place ? begins_[Addresses] + tableWords_.at({place->range, place->offset})
                     : importWord(name);
    else
      target = place ? offset(*place) : begins_[Code] + stubs_.at(name);
    architecture_->apply(site.type, result_.image, at, target + addend);
  }

  std::vector<Object> objects_;
  const Architecture *architecture_ = nullptr;           ///< of all objects
  std::map<std::pair<size_t, uintptr_t>, Place> places_; ///< of sections, by object
  std::vector<std::map<std::string, Place>> globals_;    ///< by object
  std::map<std::string, size_t> imports_;
  std::map<std::string, uint64_t> stubs_; ///< offsets in the code
  /// Words that hold an address of the image: of which place, and their offset in the addresses.
  std::map<std::pair<unsigned, uint64_t>, uint64_t> tableWords_;
  std::array<std::vector<uint8_t>, 3> contents_;
  std::array<uint64_t, 3> begins_{};
  uint64_t addressShift_ = 0;
  LinkedCode result_;
};

} // namespace

LinkedCode linkObjects(std::span<const std::vector<uint8_t>> objects) {
  return Linker(objects).run();
}

} // namespace sheaf::driver
