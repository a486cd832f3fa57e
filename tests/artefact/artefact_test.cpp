// Files of every version are read, and whatever is wrong with one is found and named.
#include "runtime/artefact/artefact.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/weights.h"
#include "runtime/io/checksum.h"
#include "runtime/io/text.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace sheaf;
using namespace sheaf::artefact;

namespace {

const std::string kGolden = SHEAF_GOLDEN "/v2.sheafc";
const std::string kWithBytes = SHEAF_GOLDEN "/v2_1.sheafc";
const std::string kWithRoots = SHEAF_GOLDEN "/v2_2.sheafc";
const std::string kWithAllRoots = SHEAF_GOLDEN "/v2_3.sheafc";
const std::string kWithLists = SHEAF_GOLDEN "/v2_4.sheafc";
const std::string kWithFurtherStacks = SHEAF_GOLDEN "/v2_5.sheafc";
const std::string kSerpentine = SHEAF_GOLDEN "/v2_6.sheafc";
const std::string kWithLengths = SHEAF_GOLDEN "/v2_7.sheafc";
const std::string kWithJoined = SHEAF_GOLDEN "/v2_8.sheafc";
const std::string kPonder = SHEAF_GOLDEN "/v2_9.sheafc";

std::vector<uint8_t> golden(const std::string &path = kGolden) {
  std::string text = io::readSource(path).text;
  return {text.begin(), text.end()};
}

/// Why bytes are refused, and the message; nothing when they are not.
std::optional<std::pair<Refusal, std::string>> refusal(const std::vector<uint8_t> &bytes,
                                                       const OpenOptions &options = {}) {
  try {
    parse(bytes, options);
  } catch (const ArtefactError &error) {
    return std::pair(error.why, std::string(error.what()));
  }
  return std::nullopt;
}

void expectRefused(const std::vector<uint8_t> &bytes, Refusal why, const std::string &part) {
  auto found = refusal(bytes);
  ASSERT_TRUE(found) << part;
  EXPECT_EQ(found->first, why) << found->second;
  EXPECT_NE(found->second.find(part), std::string::npos) << found->second;
}

/// The golden file with another description, sealed again.
std::vector<uint8_t> changed(const std::function<void(Description &)> &change) {
  std::vector<uint8_t> bytes = golden();
  Description description = parse(bytes);
  change(description);
  std::vector<uint8_t> begin = encode(description, bytes.size());
  // The sections begin with the next page; the description must stay before it.
  EXPECT_LE(begin.size(), parse(golden()).code().code.offset);
  std::copy(begin.begin(), begin.end(), bytes.begin());
  return bytes;
}

/// Seals a header after bytes of it, or of the description, were changed.
void seal(std::vector<uint8_t> &bytes) {
  uint64_t size;
  std::memcpy(&size, bytes.data() + 24, sizeof size);
  uint64_t sum = io::checksum(std::span(bytes).subspan(kHeaderBytes, size));
  std::memcpy(bytes.data() + 32, &sum, sizeof sum);
  sum = io::checksum(std::span(bytes).first(56));
  std::memcpy(bytes.data() + 56, &sum, sizeof sum);
}

TEST(Artefact, Golden) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kGolden);
  EXPECT_EQ(artefact->model().name, "v2");
  EXPECT_EQ(artefact->model().dims.at("hidden"), 4);
  EXPECT_EQ(artefact->description().target().cpu, "x86-64-v2");
  EXPECT_EQ(artefact->description().code().numerics, "multiply-add");
  EXPECT_EQ(artefact->description().target().lanes, 4);
  EXPECT_EQ(artefact->description().target().caches, (rt::CacheSizes{32 << 10, 512 << 10}));
  EXPECT_EQ(artefact->vocabularies().find("")->word(4), "d");
  rt::Session session(artefact->model());
  EXPECT_TRUE(session.findParam("node_w") >= 0);
}

TEST(Artefact, GoldenWithBytes) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kWithBytes);
  EXPECT_TRUE(artefact->model().reads);
  ASSERT_FALSE(artefact->model().kernels.empty());
  for (const rt::KernelDesc &kernel : artefact->model().kernels) {
    ASSERT_TRUE(kernel.bytes) << kernel.name;
    EXPECT_FALSE(kernel.bytes->empty()) << kernel.name;
  }
}

TEST(Artefact, GoldenWithRoots) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kWithRoots);
  ASSERT_TRUE(artefact->model().roots);
  // `h` and `next` across the first read, the former and the list across the call, and so on.
  EXPECT_GE(artefact->model().roots->size(), 2u);
  Description d = parse(golden(kWithRoots));
  (*d.model.roots)[0].push_back({rt::RootDesc::Value, 1u << 20});
  EXPECT_THROW(verify(d), ArtefactError);
}

TEST(Artefact, GoldenWithAllRoots) {
  EXPECT_TRUE(Artefact::open(kWithAllRoots)->model().rootsHoldAll);
}

TEST(Artefact, GoldenWithLists) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kWithLists);
  const rt::KernelDesc &kernel = artefact->model().kernels.at(0);
  EXPECT_EQ(kernel.layout.at(0).kind, rt::RecordWord::List);
  EXPECT_EQ(kernel.layout.at(1).kind, rt::RecordWord::Extent);
  EXPECT_EQ(rt::cpuCode(artefact->model()).kernels.at(0).weights.at(0).kind,
            rt::WeightUse::PanelsByView);
}

TEST(Artefact, GoldenWithFurtherStacks) {
  EXPECT_TRUE(Artefact::open(kWithFurtherStacks)->model().furtherStacks);
}

TEST(Artefact, GoldenThatWalksWeightsThereAndBack) {
  auto some = [](const std::string &path) {
    std::unique_ptr<Artefact> artefact = Artefact::open(path);
    const std::vector<rt::CpuKernel> &kernels = rt::cpuCode(artefact->model()).kernels;
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const rt::CpuKernel &kernel) { return kernel.serpentine; });
  };
  EXPECT_TRUE(some(kSerpentine));
}

TEST(Artefact, GoldenWithLengths) {
  Description d = parse(golden(kWithLengths));
  std::vector<int64_t> lengths;
  for (rt::TypeDesc &type : d.model.types.types)
    if (type.length)
      lengths.push_back(*type.length);
  std::sort(lengths.begin(), lengths.end());
  // Two arguments of the instance's own length, and a field.
  EXPECT_EQ(lengths, (std::vector<int64_t>{-1, -1, 3}));
  for (rt::TypeDesc &type : d.model.types.types)
    if (type.length)
      type.length = -2;
  EXPECT_THROW(verify(d), ArtefactError);
}

TEST(Artefact, PacksForJoinedKernelsOnlyWhenRowsAreShort) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kWithJoined);
  const rt::Model &model = artefact->model();
  EXPECT_EQ(std::count_if(model.kernels.begin(), model.kernels.end(),
                          [](const rt::KernelDesc &kernel) { return kernel.joined; }),
            1);
  rt::Slot steps = 10000;
  rt::Instance instance{&steps, 0};
  auto packed = [&](uint64_t limit) {
    rt::SessionOptions options;
    options.memoryLimit = limit;
    options.rowReuse = rt::When::Never; // it would leave enough of them
    rt::Session session(model, options);
    uint64_t before = session.memory().packed.now;
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(session.run({&instance, 1})[0].ok());
    return session.memory().packed.now - before;
  };
  EXPECT_EQ(packed(uint64_t(1) << 30), 0U);
  EXPECT_EQ(packed(uint64_t(6) << 20), 64U * 32 * sizeof(float));
}

TEST(Artefact, WritesWhatItReads) {
  for (const std::string &path :
       {kGolden, kWithBytes, kWithRoots, kWithAllRoots, kWithLists, kWithFurtherStacks, kSerpentine,
        kWithLengths, kWithJoined, kPonder}) {
    std::vector<uint8_t> bytes = golden(path);
    std::vector<uint8_t> again = encode(parse(bytes), bytes.size());
    EXPECT_TRUE(std::equal(again.begin(), again.end(), bytes.begin())) << path;
  }
}

TEST(Artefact, SharesWeightsUntilTheyAreChanged) {
  std::unique_ptr<Artefact> artefact = Artefact::open(kGolden);
  rt::Session one(artefact->model()), two(artefact->model());
  auto packed = one.packedWeights();
  ASSERT_FALSE(packed.empty());
  EXPECT_EQ(packed[0].data(), two.packedWeights()[0].data());
  auto index = static_cast<size_t>(one.findParam("node_w"));
  std::vector<float> zeros(8 * 4);
  one.setParam(index, {reinterpret_cast<const uint8_t *>(zeros.data()), zeros.size() * 4});
  one.packWeights();
  EXPECT_NE(one.packedWeights()[0].data(), two.packedWeights()[0].data());
  std::vector<float> own(8 * 4), other(8 * 4);
  one.param(index).copyTo(own.data());
  two.param(index).copyTo(other.data());
  EXPECT_EQ(own, zeros);
  EXPECT_NE(other, zeros);
}

TEST(Artefact, OtherFiles) {
  expectRefused({}, Refusal::NotAnArtefact, "not an artefact");
  std::string text = "dim hidden = 4, and a lot more of text that goes on for a while, and longer";
  expectRefused({text.begin(), text.end()}, Refusal::NotAnArtefact, "not an artefact");
  EXPECT_THROW(Artefact::open("/nowhere/at/all"), ArtefactError);
  EXPECT_THROW(Artefact::open("/dev/null"), ArtefactError);
  EXPECT_FALSE(isArtefact("/dev/null"));
  EXPECT_TRUE(isArtefact(kGolden));
}

TEST(Artefact, CutShort) {
  std::vector<uint8_t> bytes = golden();
  for (size_t size = 0; size < bytes.size(); size += size < 5000 ? 1 : 997)
    EXPECT_TRUE(refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}))
        << size;
  bytes.push_back(0);
  expectRefused(bytes, Refusal::Damaged, "bytes");
}

TEST(Artefact, EveryByteCounts) {
  std::vector<uint8_t> bytes = golden();
  Description d = parse(bytes);
  auto covered = [&](size_t at) {
    auto in = [&](const Section &s) { return at >= s.offset && at < s.offset + s.bytes; };
    uint64_t size;
    std::memcpy(&size, bytes.data() + 24, sizeof size);
    return at < kHeaderBytes + size || in(d.code().code) || in(d.paramSection) ||
           in(d.code().packed);
  };
  std::mt19937 random(1);
  for (size_t at = 0; at < bytes.size(); at += 1 + random() % 7) {
    if (!covered(at))
      continue;
    bytes[at] ^= 0x40;
    EXPECT_TRUE(refusal(bytes)) << at;
    bytes[at] ^= 0x40;
  }
}

TEST(Artefact, WeightsNeedNotBeRead) {
  std::vector<uint8_t> bytes = golden();
  bytes[parse(bytes).paramSection.offset] ^= 1;
  expectRefused(bytes, Refusal::Damaged, "param_section.checksum");
  EXPECT_FALSE(refusal(bytes, {"", /*checkWeights=*/false}));
}

TEST(Artefact, SaysWhichCachesItIsPlannedFor) {
  rt::CacheSizes caches{48 << 10, 2 << 20};
  std::vector<uint8_t> bytes = changed([&](Description &d) { d.code().target.caches = caches; });
  EXPECT_EQ(parse(bytes).target().caches, caches);
}

TEST(Artefact, Newer) {
  std::vector<uint8_t> bytes = golden();
  bytes[8] = kVersion + 1;
  expectRefused(bytes, Refusal::Newer, "version 3");
  bytes[8] = 1;
  expectRefused(bytes, Refusal::Older, "made by Sheaf 0.1: build it again");
  expectRefused(changed([](Description &d) { d.abi = kAbi + 1; }), Refusal::Newer, "abi is 3");
  expectRefused(changed([](Description &d) { d.abi = kAbi - 1; }), Refusal::Older, "abi is 1");

  // A field more at the end of the description: eight bytes of the zeros after it.
  auto withField = [](uint32_t number) {
    std::vector<uint8_t> file = golden();
    uint64_t size;
    std::memcpy(&size, file.data() + 24, sizeof size);
    std::memcpy(file.data() + kHeaderBytes + size, &number, sizeof number);
    size += 8;
    std::memcpy(file.data() + 24, &size, sizeof size);
    seal(file);
    return file;
  };
  expectRefused(withField(77), Refusal::Newer, "a field 77");
  EXPECT_FALSE(refusal(withField(77 | uint32_t(1) << 31)));
  expectRefused(withField(3), Refusal::Damaged, "field 3 twice");
}

/// Before the golden section another, which has nothing.
std::vector<uint8_t> withSection(const std::function<void(CodeSection &)> &change) {
  return changed([&](Description &d) {
    CodeSection section;
    section.backend = "cpu";
    section.target.architecture = rt::kArchitecture;
    section.code.offset = section.packed.offset = d.paramSection.offset;
    section.code.checksum = section.packed.checksum = io::checksum({});
    change(section);
    d.sections.insert(d.sections.begin(), section);
    d.taken = 1;
  });
}

TEST(Artefact, TakesTheFirstSectionThatRunsHere) {
  auto needsMore = [](CodeSection &s) { s.target.features = {"avx4096"}; };
  std::vector<uint8_t> bytes = withSection(needsMore);
  Description d = parse(bytes);
  EXPECT_EQ(d.taken, 1u);
  EXPECT_EQ(d.target().cpu, parse(golden()).target().cpu);
  EXPECT_EQ(d.image.functions.kernels, parse(golden()).image.functions.kernels);
  // One that could run is taken, and read.
  expectRefused(withSection([](CodeSection &) {}), Refusal::Damaged, "sections[0].body");
  // What stands in one that is not taken is checked as far as anyone knows what it is.
  expectRefused(withSection([&](CodeSection &s) {
                  needsMore(s);
                  s.packed.checksum += 1;
                }),
                Refusal::Damaged, "sections[0].packed.checksum");
  expectRefused(withSection([&](CodeSection &s) {
                  needsMore(s);
                  s.code.offset = UINT64_MAX - 4095;
                }),
                Refusal::Damaged, "sections[0].code lies");
}

TEST(Artefact, SaysWhatItHasNoCodeFor) {
  std::vector<uint8_t> bytes = withSection([](CodeSection &s) {
    s.backend = "cuda";
    s.form = "ptx";
  });
  EXPECT_EQ(parse(bytes).taken, 1u);
  auto of = [&](const std::string &backend) {
    OpenOptions options;
    options.backend = backend;
    return refusal(bytes, options).value_or(std::pair(Refusal::Digest, ""));
  };
  EXPECT_EQ(of("hip"), std::pair(Refusal::OtherMachine,
                                 std::string("has no code for 'hip', but for 'cuda', 'cpu'")));
  EXPECT_EQ(of("cuda").first, Refusal::OtherMachine);
  EXPECT_NE(of("cuda").second.find("sections[0].form is 'ptx'"), std::string::npos);
}

// Of two architectures in one file each machine takes its own; both compute by fma.
TEST(Artefact, GoldenForSeveralMachines) {
  std::vector<uint8_t> bytes = golden(SHEAF_GOLDEN "/v2_machines.sheafc");
  if (auto found = refusal(bytes); found && found->first == Refusal::OtherMachine)
    GTEST_SKIP() << found->second;
  Description d = parse(bytes);
  ASSERT_EQ(d.sections.size(), 2u);
  EXPECT_EQ(d.sections[0].target.cpu, "x86-64-v3");
  EXPECT_EQ(d.sections[1].target.architecture, "aarch64");
  EXPECT_EQ(d.target().architecture, rt::kArchitecture);
  std::unique_ptr<Artefact> artefact = Artefact::open(SHEAF_GOLDEN "/v2_machines.sheafc");
  rt::Session session(artefact->model());
  rt::Slot argument = std::bit_cast<rt::Slot>(0.75);
  rt::Instance instance{&argument, 0};
  std::span<const rt::Outcome> outcomes = session.run({&instance, 1});
  ASSERT_TRUE(outcomes[0].ok());
  rt::TensorView view = session.tensor(artefact->model().entry.resultType, outcomes[0].slots);
  ASSERT_EQ(view.shape, std::vector<int64_t>{4});
  const float expected[4] = {0.7673044F, -0.9305421F, 0.86744046F, 0.40110096F};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(reinterpret_cast<const float *>(view.data)[i], expected[i]) << i;
}

TEST(Artefact, OtherMachine) {
  expectRefused(changed([](Description &d) { d.code().target.architecture = "riscv64"; }),
                Refusal::OtherMachine, "sections[0].architecture is 'riscv64'");
  expectRefused(changed([](Description &d) { d.code().target.features.push_back("avx4096"); }),
                Refusal::OtherMachine, "sections[0].features has 'avx4096'");
  expectRefused(changed([](Description &d) { d.code().libraries.push_back({"libonemkl", "3"}); }),
                Refusal::OtherMachine, "needs the library 'libonemkl'");
  bool isX86 = std::string(rt::kArchitecture) == "x86_64";
  std::vector<std::string> here = {isX86 ? "sse2" : "neon", isX86 ? "cmov" : "fp-armv8"};
  EXPECT_FALSE(rt::missingFeature(here));
}

TEST(Artefact, Digest) {
  std::vector<uint8_t> bytes = golden();
  std::string digest = io::sha256(bytes);
  EXPECT_FALSE(refusal(bytes, {digest, true}));
  digest[5] = digest[5] == '0' ? '1' : '0';
  auto found = refusal(bytes, {digest, true});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, Refusal::Digest);
}

// FIPS 180-4's examples, and lengths about a block.
TEST(Artefact, Sha256) {
  auto of = [](const std::string &text) {
    return io::sha256({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// Descriptions whose checksums are right and whose contents are not.
TEST(Artefact, Inconsistent) {
  struct Case {
    const char *message;
    std::function<void(Description &)> change;
  };
  const Case cases[] = {
      {"model.entry.result_type", [](Description &d) { d.model.entry.resultType = 999; }},
      {"model.entry.emits", [](Description &d) { d.model.entry.emits = 999; }},
      {"model.entry.emits",
       [](Description &d) { d.image.layout.imports.emplace_back("sheaf_emit"); }},
      {"model.entry.result_type", [](Description &d) { d.model.entry.emits = 0; }},
      {"model.entry.argument_names", [](Description &d) { d.model.entry.argNames.clear(); }},
      {"model.types.types[0]",
       [](Description &d) {
         d.model.types.types[0].kind = rt::TypeKind::Tuple;
         d.model.types.types[0].children = {0};
       }},
      {"model.types.types[0].children",
       [](Description &d) {
         d.model.types.types[0].kind = rt::TypeKind::List;
         d.model.types.types[0].children = {};
       }},
      {"model.types.types[0].children",
       [](Description &d) { d.model.types.types[0].children = {999}; }},
      {"constructors[0].field_types",
       [](Description &d) { d.model.types.data[0].ctors[0].fieldTypes[0] = 999; }},
      {"constructors[0].field_names",
       [](Description &d) { d.model.types.data[0].ctors[0].fieldNames.clear(); }},
      {"vocabularies lack", [](Description &d) { d.vocabularies.clear(); }},
      {"vocabularies[0].size", [](Description &d) { d.vocabularies[0].size = 0; }},
      {"model.params[0].id", [](Description &d) { d.model.params[0].id = 1u << 30; }},
      {"model.params[0].shape", [](Description &d) { d.model.params[0].shape[0] = -1; }},
      {"model.params[0].shape",
       [](Description &d) { d.model.params[0].shape = {1 << 30, 1 << 30, 1 << 30}; }},
      {"model.folded", [](Description &d) { d.model.folded = {999}; }},
      {"param_section.bytes", [](Description &d) { d.model.paramGranules += 1; }},
      {"model.kernels[0].words", [](Description &d) { d.model.kernels[0].words += 1; }},
      {"model.kernels[0].layout", [](Description &d) { d.model.kernels[0].layout.pop_back(); }},
      {"model.kernels[0].layout[0]",
       [](Description &d) { d.model.kernels[0].layout[0].kind = rt::RecordWord::List; }},
      {"model.kernels[0].bytes",
       [](Description &d) {
         d.model.kernels[0].bytes.emplace().push_back({1, {d.model.kernels[0].words}});
       }},
      {"model.kernels[0].flop",
       [](Description &d) { d.model.kernels[0].flop.push_back({1, {d.model.kernels[0].words}}); }},
      {"model.kernels[0].family", [](Description &d) { d.model.kernels[0].family = 999; }},
      {"model.kernels[0].phase", [](Description &d) { d.model.kernels[0].phase = 255; }},
      {"model.depth_bits", [](Description &d) { d.model.depthBits = 31; }},
      {"scratch_bytes",
       [](Description &d) { rt::cpuCode(d.model).kernels[0].scratchBytes = UINT64_MAX; }},
      {"body.kernels.kernels[0].weights[0]",
       [](Description &d) {
         rt::cpuCode(d.model).kernels[0].weights[0].kind = rt::WeightUse::Panels;
         rt::cpuCode(d.model).kernels[0].weights[0].lanes = 0;
       }},
      {"body.kernels.kernels[0].weights[0]",
       [](Description &d) {
         rt::cpuCode(d.model).kernels[0].weights[0].kind = rt::WeightUse::PanelsByView;
         rt::cpuCode(d.model).kernels[0].weights[0].form = rt::WeightForm::Bf16;
       }},
      {"functions.kernels",
       [](Description &d) { d.image.functions.kernels[0] = d.image.layout.codeBytes; }},
      {"functions.kernels", [](Description &d) { d.image.functions.kernels.pop_back(); }},
      {"functions lie", [](Description &d) { d.image.functions.entry = UINT64_MAX; }},
      {"'execve'", [](Description &d) { d.image.layout.imports.push_back("execve"); }},
      {"a relocation at 0", [](Description &d) { d.image.layout.relocations = {{0, 0}}; }},
      {"a relocation",
       [](Description &d) {
         d.image.layout.relocations = {
             {static_cast<uint32_t>(d.image.layout.bytes() - 8), UINT32_MAX}};
       }},
      {"sections[0].code.bytes",
       [](Description &d) { d.image.layout.constantBytes += rt::kCodePage; }},
      {"a size of 1",
       [](Description &d) {
         d.image.layout.codeBytes = 1;
         d.code().code.bytes = d.image.layout.bytes();
         d.code().code.checksum = 0;
       }},
      {"body.packed", [](Description &d) { d.image.packed.clear(); }},
      {"body.packed[0]", [](Description &d) { d.image.packed[0].offset = 1; }},
      {"body.packed[0]", [](Description &d) { d.image.packed[0].offset = UINT64_MAX - 63; }},
      {"body.packed[0]", [](Description &d) { d.image.packed[0].bytes += 64; }},
      {"sections[0].code lies", [](Description &d) { d.code().code.offset = UINT64_MAX - 4095; }},
      {"sections[0].code lies", [](Description &d) { d.code().code.offset += 1; }},
      {"param_section lies", [](Description &d) { d.paramSection.bytes = UINT64_MAX; }},
  };
  for (const Case &each : cases) {
    if (std::string(each.message) == "a size of 1") {
      // The section's checksum would speak first.
      Description d = parse(golden());
      each.change(d);
      EXPECT_TRUE(d.image.layout.problem());
      EXPECT_THROW(verify(d), ArtefactError);
      continue;
    }
    expectRefused(changed(each.change), Refusal::Damaged, each.message);
  }
}

} // namespace
