#include "python/native/arrays.h"
#include "python/native/model.h"
#include "python/native/session.h"
#include "python/native/waiting.h"

#include "sheaf/compiler.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <variant>

namespace sheaf::python {

namespace {

nb::object textOrNone(const char *text) { return text ? nb::object(nb::str(text)) : nb::none(); }

nb::tuple fieldsOf(const sheaf_diagnostic &d, const nb::list &notes) {
  static constexpr const char *severities[] = {"error", "warning", "note"};
  return nb::make_tuple(severities[d.severity], textOrNone(d.file), d.line, d.column, d.end_line,
                        d.end_column, d.message, d.help, d.text, nb::tuple(notes));
}

nb::list listOf(const sheaf_diagnostics *diagnostics) {
  nb::list all;
  for (size_t i = 0; i < sheaf_diagnostics_count(diagnostics); ++i) {
    sheaf_diagnostic one{};
    one.size = sizeof one;
    check(sheaf_diagnostics_get(diagnostics, i, &one));
    nb::list notes;
    for (size_t k = 0; k < one.note_count; ++k) {
      sheaf_diagnostic note{};
      note.size = sizeof note;
      check(sheaf_diagnostics_note(diagnostics, i, k, &note));
      notes.append(fieldsOf(note, nb::list()));
    }
    all.append(fieldsOf(one, notes));
  }
  return all;
}

/// What a Python function says to `use "NAME"`: None, or (name, text).
struct Uses {
  nb::object function;
  std::string name, text;
  std::optional<nb::python_error> thrown;

  static int ask(void *user, const char *used, const char *by, sheaf_used_file *file) {
    auto &self = *static_cast<Uses *>(user);
    nb::gil_scoped_acquire locked;
    if (self.thrown)
      return 0;
    try {
      nb::object found = self.function(used, by);
      if (found.is_none())
        return 0;
      auto both = nb::cast<std::tuple<std::string, std::string>>(found);
      self.name = std::get<0>(both);
      self.text = std::get<1>(both);
    } catch (nb::python_error &error) {
      self.thrown.emplace(std::move(error));
      return 0;
    } catch (const std::exception &error) {
      PyErr_SetString(PyExc_TypeError, "uses: None or (name, text) belongs there");
      self.thrown.emplace();
      return 0;
    }
    file->name = self.name.c_str();
    file->text = self.text.data();
    file->length = self.text.size();
    return 1;
  }
};

struct Vocabulary {
  std::string name, path;
  std::vector<std::string> words;
  int64_t size;
};

/// A weight that is lent while the compiler reads it.
struct Weight {
  Weight(const std::string &of, PyObject *object)
      : name(of), tensor(object, "weight '" + of + "'") {}

  std::string name;
  LentTensor tensor;
};

/// What the compiler is told, and all that this points at. It may outlive the call, when that is
/// interrupted.
struct Job {
  explicit Job(const nb::dict &options);
  Job(const Job &) = delete;

  void compile() noexcept { noteStatus(sheaf_compile(&given, &made, &said)); }
  void explain() noexcept { noteStatus(sheaf_explain(&given, &explaining, &explanation, &said)); }
  ~Job() {
    sheaf_model_release(made);
    sheaf_explanation_release(explanation);
    sheaf_diagnostics_release(said);
  }

  sheaf_compile_options given{};
  std::map<std::string, std::string> texts; ///< by option
  std::map<std::string, int64_t> dims;
  std::vector<std::string> renames, without;
  std::vector<sheaf_dim> dimList;
  std::vector<Vocabulary> vocabularies;
  std::vector<std::vector<const char *>> words;
  std::vector<sheaf_vocabulary> vocabularyList;
  std::vector<std::unique_ptr<Weight>> tensors;
  std::vector<sheaf_named_tensor> tensorList;
  std::vector<const char *> renameList, withoutList;
  Uses uses;
  Stop stop;

  std::shared_ptr<Running> running; ///< what is to be told of; null: nothing
  sheaf_explain_options explaining{};

  sheaf_model *made = nullptr;
  sheaf_explanation *explanation = nullptr;
  sheaf_diagnostics *said = nullptr;
  sheaf_status status = SHEAF_OK;
  std::string message;

private:
  void noteStatus(sheaf_status ended) {
    status = ended;
    if (status != SHEAF_OK)
      message = sheaf_error_message();
  }
};

Job::Job(const nb::dict &options) : uses{options["uses"], {}, {}, {}}, stop(makeStop()) {
  auto text = [&](const char *key) -> const char * {
    nb::object value = options[key];
    if (value.is_none())
      return nullptr;
    return (texts[key] = nb::cast<std::string>(value)).c_str();
  };
  given.size = sizeof given;
  given.path = text("path");
  if ((given.text = text("text")))
    given.length = texts["text"].size();
  given.name = text("name");
  given.library = text("library");
  given.entry = text("entry");
  given.weights = text("weights");
  given.target_cpu = text("target_cpu");
  given.store = text("store");
  given.store_limit = nb::cast<uint64_t>(options["store_limit"]);
  given.seed = nb::cast<uint64_t>(options["seed"]);
  given.precision = nb::cast<bool>(options["bf16"]) ? SHEAF_BF16 : SHEAF_F32;
  given.threads = nb::cast<uint32_t>(options["threads"]);
  given.training = nb::cast<bool>(options["training"]);
  given.dropout = nb::cast<bool>(options["dropout"]);
  given.input_gradients = nb::cast<bool>(options["input_gradients"]);
  given.stop = stop.get();

  dims = nb::cast<std::map<std::string, int64_t>>(options["dims"]);
  for (const auto &[dim, value] : dims)
    dimList.push_back({dim.c_str(), value});
  given.dims = dimList.data();
  given.dim_count = dimList.size();

  for (nb::handle one : options["vocabularies"]) {
    auto [of, file, list, size] =
        nb::cast<std::tuple<std::string, std::string, std::vector<std::string>, int64_t>>(one);
    vocabularies.push_back({of, file, list, size});
  }
  words.resize(vocabularies.size());
  for (size_t i = 0; i < vocabularies.size(); ++i) {
    const Vocabulary &one = vocabularies[i];
    for (const std::string &word : one.words)
      words[i].push_back(word.c_str());
    vocabularyList.push_back({one.name.c_str(), one.path.empty() ? nullptr : one.path.c_str(),
                              words[i].empty() ? nullptr : words[i].data(),
                              words[i].empty() ? one.size : static_cast<int64_t>(words[i].size())});
  }
  given.vocabularies = vocabularyList.data();
  given.vocabulary_count = vocabularyList.size();

  for (auto [key, value] : nb::cast<nb::dict>(options["tensors"])) {
    tensors.push_back(std::make_unique<Weight>(nb::cast<std::string>(key), value.ptr()));
    tensorList.push_back({tensors.back()->name.c_str(), tensors.back()->tensor.get()});
  }
  given.tensors = tensorList.data();
  given.tensor_count = tensorList.size();

  renames = nb::cast<std::vector<std::string>>(options["renames"]);
  for (const std::string &rename : renames)
    renameList.push_back(rename.c_str());
  given.renames = renameList.data();
  given.rename_count = renameList.size();
  without = nb::cast<std::vector<std::string>>(options["without"]);
  for (const std::string &one : without)
    withoutList.push_back(one.c_str());
  given.without = withoutList.data();
  given.without_count = withoutList.size();

  if (!uses.function.is_none()) {
    given.resolve = Uses::ask;
    given.resolve_user = &uses;
  }
}

std::shared_ptr<Job> makeJob(const nb::dict &options) {
  // Whoever lets it go last: it holds objects of Python's.
  return {new Job(options), [](Job *held) {
            nb::gil_scoped_acquire locked;
            delete held;
          }};
}

/// Works, and raises what is no error in the source.
void wait(const std::shared_ptr<Job> &job, void (Job::*work)()) {
  runWaiting([job, work] { (*job.*work)(); }, job->stop);
  if (job->uses.thrown)
    throw nb::python_error(*job->uses.thrown);
  if (job->status != SHEAF_OK && job->status != SHEAF_NOT_COMPILED)
    raiseStatus(job->status, job->message);
}

nb::tuple compile(const nb::dict &options) {
  std::shared_ptr<Job> job = makeJob(options);
  wait(job, &Job::compile);
  nb::list diagnostics = listOf(job->said);
  nb::object model = nb::none();
  if (sheaf_model *made = std::exchange(job->made, nullptr))
    model = nb::cast(new Model(made), nb::rv_policy::take_ownership);
  return nb::make_tuple(model, diagnostics);
}

/// (text, JSON, page), or None, and diagnostics. With a session, of the instances of these columns.
nb::tuple explain(const nb::dict &options, Session *session, nb::handle columns,
                  uint32_t repetitions) {
  std::shared_ptr<Job> job = makeJob(options);
  job->explaining.size = sizeof job->explaining;
  job->explaining.repetitions = repetitions;
  if (session) {
    job->running = session->prepare(columns);
    job->running->session = session->handle();
    job->explaining.session = job->running->session.get();
    job->explaining.batch = &job->running->batch;
  }
  wait(job, &Job::explain);
  nb::object told = nb::none();
  if (job->explanation)
    told = nb::make_tuple(sheaf_explanation_text(job->explanation),
                          sheaf_explanation_json(job->explanation),
                          sheaf_explanation_page(job->explanation));
  return nb::make_tuple(told, listOf(job->said));
}

} // namespace

void bindCompile(nb::module_ &module) {
  module.def("compile", compile);
  module.def("explain", explain, nb::arg("options"), nb::arg("session").none(), nb::arg("columns"),
             nb::arg("repetitions"));
  module.def(
      "open_compiler",
      [](std::optional<std::string> path) {
        check(sheaf_compiler_open(path ? path->c_str() : nullptr));
      },
      nb::arg().none());
}

} // namespace sheaf::python
