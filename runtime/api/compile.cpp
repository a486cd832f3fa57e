// Compiling, by a library that is opened when it is first needed.
#include "runtime/api/compile.h"
#include "runtime/api/build.h"
#include "runtime/api/options.h"
#include "runtime/api/origin.h"
#include "runtime/api/weights.h"
#include "runtime/api/words.h"

#include <algorithm>
#include <mutex>
#include <span>

#include <dlfcn.h>

using namespace sheaf;
using namespace sheaf::api;

namespace {

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

const std::string kCompilerFile =
    std::string("libsheaf_compiler.so.") + std::to_string(SHEAF_VERSION_MAJOR);

/// What is opened when no path is given.
std::string besideThis() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&sheaf_compiler_open), &info) || !info.dli_fname)
    return {};
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1) + kCompilerFile;
}

const compile::Compiler &load(const std::string &path) {
  // Never closed: LLVM ends with the process.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    throw NoCompiler(dlerror());
  const auto *compiler =
      static_cast<const compile::Compiler *>(dlsym(library, compile::kCompilerSymbol));
  if (!compiler)
    throw NoCompiler(path + " is no compiler of Sheaf's");
  compile::Handshake own;
  if (std::string_view(compiler->handshake.version) != own.version ||
      compiler->handshake.sizes != own.sizes)
    throw NoCompiler(path + " is of Sheaf " + compiler->handshake.version +
                     ", or of another build than libsheaf_runtime, which is of " + own.version +
                     ": install both from one build");
  return *compiler;
}

} // namespace

const compile::Compiler &api::compiler(const char *path) {
  static std::mutex mutex;
  static const compile::Compiler *open = nullptr;
  std::lock_guard lock(mutex);
  if (open)
    return *open;
  if (path) {
    open = &load(path);
    return *open;
  }
  std::string beside = besideThis(), why;
  for (const std::string &file : {beside, kCompilerFile}) {
    try {
      if (!file.empty()) {
        open = &load(file);
        return *open;
      }
    } catch (const NoCompiler &error) {
      why += (why.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw NoCompiler("compiling needs libsheaf_compiler, which is installed beside libsheaf_runtime "
                   "by 'cmake --install' of a build with LLVM, or named by "
                   "sheaf_compiler_open(): " +
                   why);
}

namespace {

//===----------------------------------------------------------------------===//
// What is asked for
//===----------------------------------------------------------------------===//

std::string orElse(const char *text, const char *otherwise) { return text ? text : otherwise; }

io::Vocabulary vocabularyOf(const sheaf_vocabulary &given) {
  std::string name = io::tokenTypeName(orElse(given.name, ""));
  if (given.path && given.words)
    throw Invalid("the vocabulary of " + name + " has a path and words");
  if (given.path)
    return fromArguments([&] { return io::Vocabulary::load(given.path); });
  return vocabularyOfWords(given.words, given.size, "the vocabulary of " + name);
}

void readSourceOf(const sheaf_compile_options &options, compile::Request &request) {
  if (!!options.path + !!options.text + !!options.source != 1)
    throw Invalid(options.source                 ? "options has a source and a path or a text"
                  : options.path && options.text ? "options has a path and a text"
                                                 : "options has no path, no text and no source");
  if (options.source) {
    if (options.name)
      throw Invalid("options has a name, which is a text's: a source has that of its builder");
    request.built = options.source->built;
    request.name = request.built->name();
    return;
  }
  if (options.text) {
    request.text = options.length ? std::string(options.text, options.length) : options.text;
    request.name = orElse(options.name, "model.sheaf");
    fromArguments([&] { io::requireEightBit({request.name, request.text}); });
  } else {
    request.text = io::readSource(options.path).text;
    request.name = orElse(options.name, options.path);
    if (artefact::beginsAsArtefact(request.text))
      throw Invalid(request.name + ": a compiled model: sheaf_model_load() opens it");
    fromArguments([&] { io::requireEightBit({request.name, request.text}); });
  }
  if (request.text.find('\0') != std::string::npos)
    throw Invalid(request.name + ": a NUL byte: a source is UTF-8 text");
}

} // namespace

compile::Request api::requestOf(const sheaf_compile_options &options) {
  compile::Request request;
  readSourceOf(options, request);
  if (options.resolve)
    request.resolve = [resolve = options.resolve, user = options.resolve_user](
                          const std::string &used, const std::string &by) -> compile::UsedFile {
      sheaf_used_file file{sizeof file, nullptr, nullptr, 0};
      if (!resolve(user, used.c_str(), by.c_str(), &file))
        return {};
      return {orElse(file.name, used.c_str()),
              file.text ? std::string(file.text, file.length) : std::string()};
    };
  request.library = orElse(options.library, "");
  request.entry = orElse(options.entry, "main");
  for (const sheaf_dim &dim : array(options.dims, options.dim_count, "dims"))
    if (!request.dims.emplace(&given(dim.name, "a dim's name"), dim.value).second)
      throw Invalid(std::string("dim '") + dim.name + "' is given twice");
  for (const sheaf_vocabulary &vocabulary :
       array(options.vocabularies, options.vocabulary_count, "vocabularies")) {
    std::string name = orElse(vocabulary.name, "");
    if (request.vocabularies.find(name))
      throw Invalid("the vocabulary of " + io::tokenTypeName(name) + " is given twice");
    request.vocabularies.set(name, vocabularyOf(vocabulary));
  }
  if (options.words_of)
    request.words = io::readSource(options.words_of);
  request.wordsFormat = orElse(options.words_format, "");
  for (const char *name : array(options.without, options.without_count, "without"))
    request.without.push_back(&given(name, "an optimisation's name"));
  if (options.precision != SHEAF_F32 && options.precision != SHEAF_BF16)
    throw Invalid("options.precision is " + std::to_string(options.precision));
  request.bf16 = options.precision == SHEAF_BF16;
  request.target = orElse(options.target, "cpu");
  request.targetCpu = orElse(options.target_cpu, "host");
  auto cache = [](uint64_t bytes) {
    constexpr uint64_t most = uint64_t(1) << 40; // as of the command
    return static_cast<int64_t>(std::min(bytes, most));
  };
  request.targetCaches = {cache(options.target_cache_l1), cache(options.target_cache_l2)};
  request.training = options.training != 0;
  request.inputGradients = options.input_gradients != 0;
  if (request.inputGradients && !request.training)
    throw Invalid("options.input_gradients is for models that are compiled for training");
  request.dropout = options.dropout != 0;
  if (options.threads > 4096)
    throw Invalid("options.threads is " + std::to_string(options.threads));
  if (options.threads)
    request.threads = options.threads;
  request.store = orElse(options.store, "");
  if (options.store_limit)
    request.storeLimit = options.store_limit;
  request.stop = tokenOf(options.stop);
  return request;
}

namespace {

//===----------------------------------------------------------------------===//
// What is told
//===----------------------------------------------------------------------===//

void copyOut(const compile::Finding &finding, sheaf_diagnostic &out) {
  const compile::Place &place = finding.place;
  tell({sizeof(sheaf_diagnostic), finding.severity,
        place.file.empty() ? nullptr : place.file.c_str(), place.line, place.column, place.endLine,
        place.endColumn, finding.message.c_str(), finding.help.c_str(), finding.text.c_str(),
        finding.notes.size()},
       out, "diagnostic");
}

const compile::Finding &findingOf(const sheaf_diagnostics *diagnostics, size_t number) {
  const std::vector<compile::Finding> &all = given(diagnostics, "diagnostics").findings;
  if (number >= all.size())
    throw Invalid("there is no diagnostic " + std::to_string(number) + " but " +
                  std::to_string(all.size()));
  return all[number];
}

} // namespace

void api::checkOutcome(const compile::Answer &answer,
                       const std::vector<compile::Finding> &findings) {
  switch (answer.outcome) {
  case compile::Answer::Compiled:
    break;
  case compile::Answer::Errors:
    for (const compile::Finding &finding : findings)
      if (finding.severity == compile::Finding::Error)
        throw NotCompiled(answer.message,
                          {finding.place.file, finding.place.line, finding.place.column},
                          finding.message);
    throw NotCompiled(answer.message);
  case compile::Answer::Refused:
    throw Invalid(answer.message, answer.place, answer.reason);
  case compile::Answer::NotReadable:
    throw NotReadable(answer.message, answer.place, answer.reason);
  case compile::Answer::Stopped:
    throw Stopped(answer.message);
  case compile::Answer::NoMemory:
    throw OutOfMemory(answer.message);
  case compile::Answer::Internal:
    throw std::logic_error(answer.message);
  }
}

namespace {

std::shared_ptr<const ModelOrigin> originOf(const sheaf_compile_options &options,
                                            const compile::Request &request,
                                            const compile::Answer &answer) {
  auto origin = std::make_shared<ModelOrigin>();
  fit::TrainConfig &config = origin->config;
  if (options.path && !options.resolve) {
    config.model = options.path;
    config.hashes["model"] = answer.sourceHash;
  }
  for (const auto &[name, value] : answer.dims)
    config.dims.push_back(name + "=" + std::to_string(value));
  config.constants = io::constantsText(answer.compiled.description.model.constants);
  config.without = request.without;
  config.target = request.target;
  config.targetCpu = request.targetCpu;
  auto cache = [&](const char *level, int64_t bytes) {
    if (bytes)
      config.targetCache +=
          (config.targetCache.empty() ? "" : ",") + (level + std::to_string(bytes));
  };
  cache("L1=", request.targetCaches.l1);
  cache("L2=", request.targetCaches.l2);
  config.precision = request.bf16 ? "bf16" : "f32";
  config.dropout = request.dropout;
  origin->storedNames = answer.storedNames;
  return origin;
}

std::shared_ptr<const LoadedModel> compiled(const sheaf_compile_options &options,
                                            std::vector<compile::Finding> &findings) {
  compile::Request request = requestOf(options);
  Weights weights(options);
  weights.bind(request);
  compile::Answer answer;
  compiler().compile(request, answer);
  findings = std::move(answer.findings);
  checkOutcome(answer, findings);
  std::shared_ptr<const ModelOrigin> origin = originOf(options, request, answer);
  return std::make_shared<LoadedModel>(artefact::Artefact::make(std::move(answer.compiled),
                                                                [&](rt::Session &session) {
                                                                  weights.set(session, answer,
                                                                              findings);
                                                                }),
                                       std::move(origin));
}

} // namespace

sheaf_status sheaf_compile(const sheaf_compile_options *options, sheaf_model **model,
                           sheaf_diagnostics **diagnostics) {
  return guardedTelling(diagnostics, [&](std::vector<compile::Finding> &findings) {
    given(options, "options");
    given(model, "model");
    *model = new sheaf_model{compiled(known(options, "sheaf_compile_options"), findings)};
  });
}

sheaf_status sheaf_compiler_open(const char *path) {
  return guarded([&] { compiler(path); });
}

sheaf_status sheaf_model_save(const sheaf_model *model, const char *path) {
  return guarded([&] {
    given(path, "path");
    const artefact::Artefact &from = given(model, "model").model->artefact();
    fromArguments([&] { from.save(path); });
  });
}

size_t sheaf_diagnostics_count(const sheaf_diagnostics *diagnostics) {
  return diagnostics ? diagnostics->findings.size() : 0;
}

sheaf_status sheaf_diagnostics_get(const sheaf_diagnostics *diagnostics, size_t number,
                                   sheaf_diagnostic *diagnostic) {
  return guarded([&] { copyOut(findingOf(diagnostics, number), given(diagnostic, "diagnostic")); });
}

sheaf_status sheaf_diagnostics_note(const sheaf_diagnostics *diagnostics, size_t number,
                                    size_t note, sheaf_diagnostic *diagnostic) {
  return guarded([&] {
    const std::vector<compile::Finding> &notes = findingOf(diagnostics, number).notes;
    if (note >= notes.size())
      throw Invalid("the diagnostic has no note " + std::to_string(note) + " but " +
                    std::to_string(notes.size()));
    copyOut(notes[note], given(diagnostic, "diagnostic"));
  });
}

const char *sheaf_diagnostics_text(const sheaf_diagnostics *diagnostics) {
  return diagnostics ? diagnostics->text.c_str() : "";
}

void sheaf_diagnostics_release(sheaf_diagnostics *diagnostics) { delete diagnostics; }
