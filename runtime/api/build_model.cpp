// Models that a program builds: declarations, and the whole.
#include "runtime/api/build.h"
#include "runtime/api/compile.h"
#include "runtime/api/options.h"

using namespace sheaf;
using namespace sheaf::api;
using namespace sheaf::compile;

namespace {

form::Names namesOf(const char *const *names, size_t count, const char *what) {
  form::Names all;
  for (const char *name : elements(names, count, what))
    all.emplace_back(&given(name, what));
  return all;
}

form::ConfigValue valueOf(const sheaf_config_value &value) {
  switch (value.kind) {
  case SHEAF_CONFIG_NULL:
    return std::monostate();
  case SHEAF_CONFIG_BOOL:
    return value.number != 0;
  case SHEAF_CONFIG_NUMBER:
    return value.number;
  case SHEAF_CONFIG_TEXT:
    return std::string(&given(value.text, "the text of a value"));
  }
  throw Invalid("the kind of a value is " + std::to_string(value.kind));
}

/// A form whose size the caller has set.
template <typename Of> Of formOf(const Of *form, const char *type) {
  given(form, "form");
  return known(form, type);
}

} // namespace

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

sheaf_status sheaf_build_use(sheaf_model_builder *builder, const char *file, const char *as,
                             const sheaf_place *at) {
  return declare(builder, at,
                 [&](NewStep &) { return form::Use{named(file, "file"), as ? as : ""}; });
}

sheaf_status sheaf_build_dim(sheaf_model_builder *builder, const sheaf_dim_form *form,
                             const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &step) {
    sheaf_dim_form of = formOf(form, "sheaf_dim_form");
    return form::Dim{&given(of.name, "name"), step.exprIfAny(of.value, "value"),
                     namesOf(of.config, of.config_count, "config")};
  });
}

sheaf_status sheaf_build_data(sheaf_model_builder *builder, const sheaf_data_form *form,
                              const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &step) {
    sheaf_data_form of = formOf(form, "sheaf_data_form");
    form::Data data{
        &given(of.name, "name"), {}, namesOf(of.type_params, of.type_param_count, "type_params")};
    for (const sheaf_built_constructor &constructor :
         elements(of.constructors, of.constructor_count, "constructors")) {
      form::Constructor &made = data.constructors.emplace_back();
      made.name = &given(constructor.name, "a constructor's name");
      for (const sheaf_built_field &field :
           elements(constructor.fields, constructor.field_count, "fields"))
        made.fields.emplace_back(&given(field.name, "a field's name"),
                                 step.type(field.type, "a field's type"));
    }
    return data;
  });
}

sheaf_status sheaf_build_param(sheaf_model_builder *builder, const sheaf_param_form *form,
                               const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &step) {
    sheaf_param_form of = formOf(form, "sheaf_param_form");
    return form::Param{&given(of.name, "name"), step.type(of.type, "type"),
                       &given(of.initializer, "initializer"), step.arguments(of.args, of.arg_count),
                       namesOf(of.stored, of.stored_count, "stored")};
  });
}

sheaf_status sheaf_build_fn(sheaf_model_builder *builder, const sheaf_fn_form *form,
                            const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &step) {
    sheaf_fn_form of = formOf(form, "sheaf_fn_form");
    return form::Fn{&given(of.name, "name"),
                    step.parameters(of.params, of.param_count),
                    step.typeIfAny(of.result, "result"),
                    step.expr(of.body, "body"),
                    namesOf(of.type_params, of.type_param_count, "type_params"),
                    step.typeIfAny(of.emits, "emits")};
  });
}

sheaf_status sheaf_build_constant(sheaf_model_builder *builder, const sheaf_constant_form *form,
                                  const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &step) {
    sheaf_constant_form of = formOf(form, "sheaf_constant_form");
    return form::Constant{&given(of.name, "name"), step.expr(of.value, "value"),
                          step.typeIfAny(of.type, "type"),
                          namesOf(of.config, of.config_count, "config"),
                          namesOf(of.stored, of.stored_count, "stored")};
  });
}

sheaf_status sheaf_build_layer(sheaf_model_builder *builder, const sheaf_layer_form *form,
                               const sheaf_place *at) {
  return guarded([&] {
    std::lock_guard lock(given(builder, "builder").mutex);
    NewStep step(*builder);
    sheaf_layer_form of = formOf(form, "sheaf_layer_form");
    if (builder->isInLayer)
      throw Invalid("a layer has no layers in it: sheaf_build_layer_end() ends the one before");
    form::Layer layer{&given(of.name, "name"), namesOf(of.dims, of.dim_count, "dims")};
    step.add(NewStep::Family::Declaration, std::move(layer), at);
    builder->isInLayer = true;
  });
}

sheaf_status sheaf_build_layer_end(sheaf_model_builder *builder) {
  return guarded([&] {
    std::lock_guard lock(given(builder, "builder").mutex);
    NewStep step(*builder);
    if (!builder->isInLayer)
      throw Invalid("there is no layer to end");
    step.add(NewStep::Family::Declaration, form::LayerEnd(), nullptr);
    builder->isInLayer = false;
  });
}

sheaf_status sheaf_build_config_check(sheaf_model_builder *builder, const sheaf_config_form *form,
                                      const sheaf_place *at) {
  return declare(builder, at, [&](NewStep &) {
    sheaf_config_form of = formOf(form, "sheaf_config_form");
    form::ConfigCheck check{
        namesOf(of.config, of.config_count, "config"), {}, &given(of.message, "message"), {}};
    for (const sheaf_config_value &value : elements(of.values, of.value_count, "values"))
      check.values.push_back(valueOf(value));
    if (of.absent)
      check.absent = valueOf(*of.absent);
    return check;
  });
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

sheaf_status sheaf_model_builder_create(const char *name, sheaf_model_builder **builder) {
  return guarded([&] {
    given(builder, "builder");
    *builder = new sheaf_model_builder(named(name, "name"));
  });
}

void sheaf_model_builder_release(sheaf_model_builder *builder) { delete builder; }

sheaf_status sheaf_model_builder_text(sheaf_model_builder *builder, const char *file,
                                      const char *text, size_t length) {
  return guarded([&] {
    std::lock_guard lock(given(builder, "builder").mutex);
    NewStep step(*builder);
    std::string name = named(file, "file");
    if (length)
      given(text, "text");
    Built::File made{name, length ? std::string(text, length) : std::string()};
    auto known = builder->fileNumbers.find(name);
    if (known == builder->fileNumbers.end()) {
      builder->built.files.push_back(std::move(made));
      builder->fileNumbers.emplace(std::move(name),
                                   static_cast<uint32_t>(builder->built.files.size() - 1));
      return;
    }
    Built::File &there = builder->built.files[known->second];
    if (there.text)
      throw Invalid(name + ": its text is given twice");
    there = std::move(made);
  });
}

sheaf_status sheaf_model_builder_finish(sheaf_model_builder *builder, sheaf_source **source) {
  return guarded([&] {
    std::lock_guard lock(given(builder, "builder").mutex);
    given(source, "source");
    NewStep last(*builder);
    if (builder->isInLayer)
      throw Invalid("a layer has not ended: sheaf_build_layer_end() ends it");
    auto made = std::make_unique<sheaf_source>();
    auto built = std::make_shared<Built>();
    std::swap(*built, builder->built);
    made->built = std::move(built);
    builder->isFinished = true;
    *source = made.release();
  });
}

void sheaf_source_release(sheaf_source *source) { delete source; }

sheaf_status sheaf_source_text(sheaf_source *source, const char **text) {
  return guarded([&] {
    std::lock_guard lock(given(source, "source").mutex);
    given(text, "text");
    if (!source->text) {
      compile::Answer answer;
      std::string printed;
      compiler().print(*source->built, answer, printed);
      checkOutcome(answer, answer.findings);
      source->text = std::move(printed);
    }
    *text = source->text->c_str();
  });
}
