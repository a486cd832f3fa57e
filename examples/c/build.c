/* A front end of its own: builds a model of a line of postfix notation, without a text of Sheaf's,
 * and runs it on one vector:
 *
 *   cc build.c -o build -lsheaf_runtime
 *   ./build "x w @ tanh x +" 1 2.5 -4
 *
 * x is the vector, w a square matrix, other numbers are constants; + - * @ and the names of
 * functions take what stands before them. Errors name the column of that line.
 */
#include <sheaf/builder.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostWords = 64, kMostLetters = 32 };

static void check(sheaf_status status) {
  if (status == SHEAF_OK)
    return;
  fprintf(stderr, "error: %s\n", sheaf_error_message());
  exit(1);
}

/* An operator for a word, or -1. */
static int operator_of(const char *word) {
  switch (word[1] ? 0 : word[0]) {
  case '+':
    return SHEAF_ADD;
  case '-':
    return SHEAF_SUB;
  case '*':
    return SHEAF_MUL;
  case '@':
    return SHEAF_MATMUL;
  }
  return -1;
}

/* The expression that a line says. */
static sheaf_built_expr expression(sheaf_model_builder *b, const char *line) {
  sheaf_built_expr stack[kMostWords];
  size_t depth = 0;
  for (const char *at = line; *at;) {
    size_t length = strcspn(at, " ");
    if (length == 0) {
      ++at;
      continue;
    }
    char word[kMostLetters] = "";
    memcpy(word, at, length < kMostLetters - 1 ? length : kMostLetters - 1);
    int64_t column = at - line + 1;
    sheaf_place place = {"line", 1, column, 1, column + (int64_t)length};
    int op = operator_of(word);
    size_t taken = op >= 0 ? 2 : isalpha((unsigned char)word[0]) && word[1] ? 1 : 0;
    if (depth < taken || depth - taken == kMostWords) {
      fprintf(stderr, "line:1:%d: '%s' has too little or too much before it\n", (int)column, word);
      exit(1);
    }
    depth -= taken;
    sheaf_built_expr *made = &stack[depth];
    if (op >= 0) {
      check(sheaf_build_binary(b, op, stack[depth], stack[depth + 1], &place, made));
    } else if (taken == 1) {
      sheaf_built_expr function;
      sheaf_built_argument argument = {NULL, stack[depth]};
      check(sheaf_build_name(b, word, &place, &function));
      check(sheaf_build_call(b, function, &argument, 1, &place, made));
    } else if (isalpha((unsigned char)word[0])) {
      check(sheaf_build_name(b, word, &place, made));
    } else {
      check(sheaf_build_float(b, strtod(word, NULL), &place, made));
    }
    ++depth;
    at += length;
  }
  if (depth != 1) {
    fprintf(stderr, "line: %d values are left, not one\n", (int)depth);
    exit(1);
  }
  return stack[0];
}

/* param w : f32[n, n] = glorot
 * fn main(x: f32[n]) -> f32[n] = LINE */
static sheaf_source *source_of(const char *line, int64_t n) {
  sheaf_model_builder *b;
  check(sheaf_model_builder_create("line", &b));
  check(sheaf_model_builder_text(b, "line", line, strlen(line)));
  DLDataType f32 = {kDLFloat, 32, 1};
  sheaf_extent extents[2] = {{SHEAF_EXTENT_NUMBER, n, NULL, {0}},
                             {SHEAF_EXTENT_NUMBER, n, NULL, {0}}};
  sheaf_built_type vector, matrix;
  check(sheaf_build_tensor_type(b, f32, extents, 1, NULL, &vector));
  check(sheaf_build_tensor_type(b, f32, extents, 2, NULL, &matrix));

  sheaf_param_form w = {sizeof w};
  w.name = "w";
  w.type = matrix;
  w.initializer = "glorot";
  check(sheaf_build_param(b, &w, NULL));

  sheaf_built_parameter x = {"x", {0}, vector};
  sheaf_fn_form entry = {sizeof entry};
  entry.name = "main";
  entry.params = &x;
  entry.param_count = 1;
  entry.result = vector;
  entry.body = expression(b, line);
  check(sheaf_build_fn(b, &entry, NULL));

  sheaf_source *source;
  check(sheaf_model_builder_finish(b, &source));
  sheaf_model_builder_release(b);
  return source;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s LINE NUMBER ...\n", argv[0]);
    return 2;
  }
  int64_t count = argc - 2;
  sheaf_compile_options options = {sizeof options};
  options.source = source_of(argv[1], count);
  options.seed = 1;
  sheaf_model *model = NULL;
  sheaf_diagnostics *diagnostics;
  sheaf_status status = sheaf_compile(&options, &model, &diagnostics);
  fputs(sheaf_diagnostics_text(diagnostics), stderr);
  if (status == SHEAF_NOT_COMPILED)
    return 1;
  sheaf_diagnostics_release(diagnostics);
  sheaf_source_release(options.source);
  check(status);

  float *numbers = malloc((size_t)count * sizeof *numbers);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = strtof(argv[i + 2], NULL);
  sheaf_type type = sheaf_model_argument_type(model, 0);
  DLTensor vector = {numbers, {kDLCPU, 0}, 1, sheaf_type_dtype(model, type), &count, NULL, 0};
  sheaf_batch *batch;
  sheaf_value x;
  check(sheaf_batch_create(model, &batch));
  check(sheaf_make_tensor(batch, type, &vector, &x));
  check(sheaf_batch_add(batch, &x, 1, 0));
  sheaf_session *session;
  sheaf_result *result;
  check(sheaf_session_create(NULL, &session));
  check(sheaf_session_run(session, batch, &result));
  sheaf_view view;
  DLManagedTensor *y;
  check(sheaf_result_value(result, 0, &view));
  check(sheaf_view_tensor(result, view, &y));
  for (int64_t i = 0; i < y->dl_tensor.shape[0]; ++i)
    printf("%.9g ", ((const float *)y->dl_tensor.data)[i]);
  printf("\n");

  y->deleter(y);
  sheaf_result_release(result);
  sheaf_session_release(session);
  sheaf_batch_release(batch);
  sheaf_model_release(model);
  free(numbers);
  return 0;
}
