// RUN: sheaf-opt --code-motion=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --code-motion=without=code-motion %s | FileCheck %s --check-prefix=OFF
// RUN: sed 's/^module {/module attributes {sheaf.training} {/' %s | sheaf-opt --code-motion | FileCheck %s --check-prefix=TRAIN

// CHECK-DAG: remark: exp after the branch becomes part of the last block of each arm
// CHECK-DAG: remark: exp after the branch becomes part of the last block of 1 of its arms
// CHECK-DAG: remark: exp stays after the branch: an arm ends with a call
// CHECK-DAG: remark: exp stays after the branch: the kernel at the end of an arm runs elsewhere, too
// CHECK-DAG: remark: add stays after the branch: at the end of an arm it takes more than that block is made of
// CHECK-DAG: remark: sigmoid stays after the branch: its kernel runs elsewhere, too
// CHECK-DAG: remark: tanh of a branch runs before it, whichever is taken
// CHECK-DAG: remark: tanh stays in its branch: it is too much to compute in vain
// CHECK-DAG: remark: div, relu after the loop becomes part of the last block of its body
// CHECK-DAG: remark: scalar, sub stays after the branch: at the end of an arm it takes more than that block is made of
// CHECK-DAG: remark: scalar, mul stays in its branch: before it, it takes more than that block is made of
// CHECK-DAG: remark: mul stays in its branch: before it, it would make that one block with others that read the same
// CHECK-DAG: remark: abs stays in its branch: without it, what follows the branch might be other blocks

module {
sheaf.param @w : tensor<4x4xf32> init("glorot", [])
sheaf.param @u : tensor<6x6xf32> init("glorot", [])

// Into both arms, after their products; constants come along. The result as it was goes, for
// nobody else takes it.
// CHECK-LABEL: func.func @tail
// CHECK: scf.if {{.*}} -> (tensor<4xf32>)
// CHECK: sheaf.apply "matmul"
// CHECK: %[[A:.*]] = sheaf.apply "exp"
// CHECK-NEXT: scf.yield %[[A]]
// CHECK: else
// CHECK: sheaf.apply "matmul"
// CHECK: %[[B:.*]] = sheaf.apply "exp"
// CHECK-NEXT: scf.yield %[[B]]
// CHECK-NOT: sheaf.apply
// CHECK: return
// OFF-LABEL: func.func @tail
// OFF-COUNT-2: "matmul"
// OFF: "exp"
// OFF-NOT: "exp"
// OFF: return
// TRAIN-LABEL: func.func @tail
// TRAIN-COUNT-2: "exp"
// TRAIN: return
func.func @tail(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %w = sheaf.param_ref @w : tensor<4x4xf32>
  %b = scf.if %c -> tensor<4xf32> {
    %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  } else {
    %t = sheaf.apply "matmul"(%w, %x) {} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  %e = sheaf.apply "exp"(%b) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// In an arm that gives what was there, the tail is a record as before; the branch's own result is
// kept for who takes it.
// CHECK-LABEL: func.func @passes
// CHECK: scf.if {{.*}} -> (tensor<5xf32>, tensor<5xf32>)
func.func @passes(%c: i1, %x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %b = scf.if %c -> tensor<5xf32> {
    %p = sheaf.apply "reduce_sum"(%x) {axis = 0 : i64, keepdims = 0 : i64} : (tensor<5xf32>) -> tensor<f32>
    %q = sheaf.apply "mul"(%x, %p) {} : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    scf.yield %q : tensor<5xf32>
  } else {
    scf.yield %x : tensor<5xf32>
  }
  %e = sheaf.apply "exp"(%b) {} : (tensor<5xf32>) -> tensor<5xf32>
  return %b, %e : tensor<5xf32>, tensor<5xf32>
}

// After a product it stays: it is part of that block. After a call it stays: the call is the
// last thing that the arm does.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-2: scf.yield
// CHECK: sheaf.apply "exp"
// CHECK-COUNT-2: scf.yield
// CHECK: sheaf.apply "exp"
func.func @stays(%c: i1, %x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %b = scf.if %c -> tensor<6xf32> {
    %p = sheaf.apply "sigmoid"(%x) {} : (tensor<6xf32>) -> tensor<6xf32>
    scf.yield %p : tensor<6xf32>
  } else {
    scf.yield %x : tensor<6xf32>
  }
  %u = sheaf.param_ref @u : tensor<6x6xf32>
  %e = sheaf.apply "exp"(%b) {} : (tensor<6xf32>) -> tensor<6xf32>
  %f = sheaf.apply "matmul"(%e, %u) {} : (tensor<6xf32>, tensor<6x6xf32>) -> tensor<6xf32>
  %d = scf.if %c -> tensor<6xf32> {
    %p:2 = func.call @stays(%c, %f) : (i1, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>)
    scf.yield %p#0 : tensor<6xf32>
  } else {
    %p = sheaf.apply "sigmoid"(%x) {} : (tensor<6xf32>) -> tensor<6xf32>
    scf.yield %p : tensor<6xf32>
  }
  %g = sheaf.apply "exp"(%d) {} : (tensor<6xf32>) -> tensor<6xf32>
  return %f, %g : tensor<6xf32>, tensor<6xf32>
}

// The product of an arm is one kernel with that before the branch, as long as both are alike.
sheaf.param @v : tensor<7x7xf32> init("glorot", [])
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-2: scf.yield
// CHECK: sheaf.apply "exp"
func.func @shared(%c: i1, %x: tensor<7xf32>) -> tensor<7xf32> {
  %v = sheaf.param_ref @v : tensor<7x7xf32>
  %y = sheaf.apply "matmul"(%x, %v) {} : (tensor<7xf32>, tensor<7x7xf32>) -> tensor<7xf32>
  %b = scf.if %c -> tensor<7xf32> {
    %p = sheaf.apply "matmul"(%y, %v) {} : (tensor<7xf32>, tensor<7x7xf32>) -> tensor<7xf32>
    scf.yield %p : tensor<7xf32>
  } else {
    scf.yield %y : tensor<7xf32>
  }
  %e = sheaf.apply "exp"(%b) {} : (tensor<7xf32>) -> tensor<7xf32>
  return %e : tensor<7xf32>
}

// What the tail takes beside the branch's result is ready later than what the arms take.
// CHECK-LABEL: func.func @late
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: sheaf.apply "add"
sheaf.param @l : tensor<8x8xf32> init("glorot", [])
sheaf.param @r : tensor<8x8xf32> init("glorot", [])
func.func @late(%c: i1, %x: tensor<8xf32>) -> tensor<8xf32> {
  %l = sheaf.param_ref @l : tensor<8x8xf32>
  %r = sheaf.param_ref @r : tensor<8x8xf32>
  %s = func.call @late(%c, %x) : (i1, tensor<8xf32>) -> tensor<8xf32>
  %b = scf.if %c -> tensor<8xf32> {
    %p = sheaf.apply "matmul"(%x, %l) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    scf.yield %p : tensor<8xf32>
  } else {
    %p = sheaf.apply "matmul"(%x, %r) {} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
    scf.yield %p : tensor<8xf32>
  }
  %e = sheaf.apply "add"(%b, %s) {} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %e : tensor<8xf32>
}

// The kernel of the tail runs elsewhere, too: the two meet in one launch.
// CHECK-LABEL: func.func @twice
// CHECK: scf.if
// CHECK-COUNT-2: scf.yield
// CHECK: sheaf.apply "sigmoid"
func.func @twice(%c: i1, %x: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
  %s = sheaf.apply "sigmoid"(%x) {} : (tensor<10xf32>) -> tensor<10xf32>
  %b = scf.if %c -> tensor<10xf32> {
    %p = sheaf.apply "exp"(%x) {} : (tensor<10xf32>) -> tensor<10xf32>
    scf.yield %p : tensor<10xf32>
  } else {
    scf.yield %x : tensor<10xf32>
  }
  %e = sheaf.apply "sigmoid"(%b) {} : (tensor<10xf32>) -> tensor<10xf32>
  return %s, %e : tensor<10xf32>, tensor<10xf32>
}

// The beginning of an arm, before the branch where its operand is made. What takes ints (a slice
// from there on might reach too far), a draw, and what takes a field of the match stay.
// CHECK-LABEL: func.func @head
// CHECK: sheaf.apply "matmul"
// CHECK: sheaf.apply "tanh"
// CHECK: sheaf.apply "relu"
// CHECK: scf.if
// CHECK-NOT: "tanh"
// CHECK: "window"
// CHECK: else
// TRAIN-LABEL: func.func @head
// TRAIN: scf.if
// TRAIN: "tanh"
sheaf.param @h : tensor<4x4xf32> init("glorot", [])
func.func @head(%c: i1, %x: tensor<4xf32>, %n: i64) -> (tensor<4xf32>, tensor<2xf32>) {
  %h = sheaf.param_ref @h : tensor<4x4xf32>
  %y = sheaf.apply "matmul"(%x, %h) {} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %b:2 = scf.if %c -> (tensor<4xf32>, tensor<2xf32>) {
    %p = sheaf.apply "tanh"(%y) {} : (tensor<4xf32>) -> tensor<4xf32>
    %z = sheaf.apply "window"(%x, %n) {axis = 0 : i64, size = 2 : i64} : (tensor<4xf32>, i64) -> tensor<2xf32>
    scf.yield %p, %z : tensor<4xf32>, tensor<2xf32>
  } else {
    %q = sheaf.apply "relu"(%y) {} : (tensor<4xf32>) -> tensor<4xf32>
    %z = sheaf.apply "window"(%x, %n) {axis = 0 : i64, size = 2 : i64} : (tensor<4xf32>, i64) -> tensor<2xf32>
    scf.yield %q, %z : tensor<4xf32>, tensor<2xf32>
  }
  return %b#0, %b#1 : tensor<4xf32>, tensor<2xf32>
}

// Too much for what it would save. Nor an arm that ends a recursion: it is taken once.
// CHECK-LABEL: func.func @vain
// CHECK: scf.if
// CHECK: "tanh"
// CHECK: scf.if
// CHECK: "exp"
func.func @vain(%c: i1, %x: tensor<4096xf32>) -> tensor<4096xf32> {
  %y = sheaf.apply "relu"(%x) {} : (tensor<4096xf32>) -> tensor<4096xf32>
  %b = scf.if %c -> tensor<4096xf32> {
    %p = sheaf.apply "tanh"(%y) {} : (tensor<4096xf32>) -> tensor<4096xf32>
    scf.yield %p : tensor<4096xf32>
  } else {
    scf.yield %y : tensor<4096xf32>
  }
  return %b : tensor<4096xf32>
}
func.func @last(%c: i1, %x: tensor<12xf32>) -> tensor<12xf32> {
  %y = sheaf.apply "relu"(%x) {} : (tensor<12xf32>) -> tensor<12xf32>
  %b = scf.if %c -> tensor<12xf32> {
    %p = sheaf.apply "exp"(%y) {} : (tensor<12xf32>) -> tensor<12xf32>
    scf.yield %p : tensor<12xf32>
  } else {
    %p = func.call @last(%c, %y) : (i1, tensor<12xf32>) -> tensor<12xf32>
    scf.yield %p : tensor<12xf32>
  }
  return %b : tensor<12xf32>
}

// After a fold in a loop: carried, where the list has elements; any tensor will do as the first.
// CHECK-LABEL: func.func @loops
// CHECK: sheaf.len
// CHECK: %[[I:.*]] = sheaf.tuple(%[[X:.*]], %[[X]], %[[X]])
// CHECK-NEXT: sheaf.fold %[[I]]
// CHECK: %[[N:.*]] = sheaf.apply "sub"
// CHECK: %[[D:.*]] = sheaf.apply "div"
// CHECK-NEXT: %[[R:.*]] = sheaf.apply "relu"(%[[D]])
// CHECK-NEXT: sheaf.tuple(%[[N]], %{{.*}}, %[[R]])
// CHECK-NOT: "div"
// CHECK: scf.yield
// CHECK: else
// CHECK: sheaf.fold
// CHECK: sheaf.yield
// CHECK: "div"
// CHECK: "relu"
// CHECK: scf.yield
// CHECK: %[[S:.*]] = sheaf.apply "tanh"
// CHECK: sheaf.fold %[[S]]
// CHECK: sheaf.yield
// CHECK: sheaf.apply "exp"
// CHECK: return
// TRAIN-LABEL: func.func @loops
// TRAIN: sheaf.yield
// TRAIN: "div"
func.func @loops(%xss: !sheaf.list<!sheaf.list<tensor<11xf32>>>, %x: tensor<11xf32>) -> !sheaf.list<tuple<tensor<11xf32>, tensor<11xf32>, tensor<11xf32>>> {
  %zero = arith.constant 0 : i64
  %ys = sheaf.map %xss : (!sheaf.list<!sheaf.list<tensor<11xf32>>>) -> !sheaf.list<tuple<tensor<11xf32>, tensor<11xf32>, tensor<11xf32>>> {
  ^bb0(%xs: !sheaf.list<tensor<11xf32>>):
    %len = sheaf.len %xs : <tensor<11xf32>>
    %some = arith.cmpi ne, %len, %zero : i64
    %first = sheaf.tuple(%x, %x) : (tensor<11xf32>, tensor<11xf32>) -> tuple<tensor<11xf32>, tensor<11xf32>>
    %r = scf.if %some -> tensor<11xf32> {
      %f = sheaf.fold %first, %xs : (tuple<tensor<11xf32>, tensor<11xf32>>, !sheaf.list<tensor<11xf32>>) -> tuple<tensor<11xf32>, tensor<11xf32>> {
      ^bb0(%s: tuple<tensor<11xf32>, tensor<11xf32>>, %e: tensor<11xf32>):
        %a = sheaf.get %s[0] : (tuple<tensor<11xf32>, tensor<11xf32>>) -> tensor<11xf32>
        %b = sheaf.get %s[1] : (tuple<tensor<11xf32>, tensor<11xf32>>) -> tensor<11xf32>
        %n = sheaf.apply "sub"(%a, %e) {} : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
        %t = sheaf.tuple(%n, %b) : (tensor<11xf32>, tensor<11xf32>) -> tuple<tensor<11xf32>, tensor<11xf32>>
        sheaf.yield %t : tuple<tensor<11xf32>, tensor<11xf32>>
      }
      %p = sheaf.get %f[0] : (tuple<tensor<11xf32>, tensor<11xf32>>) -> tensor<11xf32>
      %q = sheaf.get %f[1] : (tuple<tensor<11xf32>, tensor<11xf32>>) -> tensor<11xf32>
      %d = sheaf.apply "div"(%p, %q) {} : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
      scf.yield %d : tensor<11xf32>
    } else {
      %f = sheaf.fold %x, %xs : (tensor<11xf32>, !sheaf.list<tensor<11xf32>>) -> tensor<11xf32> {
      ^bb0(%s: tensor<11xf32>, %e: tensor<11xf32>):
        %n = sheaf.apply "add"(%s, %e) {} : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
        sheaf.yield %n : tensor<11xf32>
      }
      %d = sheaf.apply "div"(%f, %x) {} : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
      scf.yield %d : tensor<11xf32>
    }
    %r2 = sheaf.apply "relu"(%r) {} : (tensor<11xf32>) -> tensor<11xf32>
    %s0 = sheaf.apply "tanh"(%x) {} : (tensor<11xf32>) -> tensor<11xf32>
    %g = sheaf.fold %s0, %xs : (tensor<11xf32>, !sheaf.list<tensor<11xf32>>) -> tensor<11xf32> {
    ^bb0(%s: tensor<11xf32>, %e: tensor<11xf32>):
      %n = sheaf.apply "add"(%s, %e) {} : (tensor<11xf32>, tensor<11xf32>) -> tensor<11xf32>
      sheaf.yield %n : tensor<11xf32>
    }
    %h = sheaf.apply "exp"(%g) {} : (tensor<11xf32>) -> tensor<11xf32>
    %both = sheaf.tuple(%h, %r2, %h) : (tensor<11xf32>, tensor<11xf32>, tensor<11xf32>) -> tuple<tensor<11xf32>, tensor<11xf32>, tensor<11xf32>>
    sheaf.yield %both : tuple<tensor<11xf32>, tensor<11xf32>, tensor<11xf32>>
  }
  return %ys : !sheaf.list<tuple<tensor<11xf32>, tensor<11xf32>, tensor<11xf32>>>
}

// A number of the instance, unlike one of the program, would make other records of the product.
// CHECK-LABEL: func.func @keys
// CHECK: %[[Y:.*]] = sheaf.apply "matmul"
// CHECK: scf.if
// CHECK: sheaf.apply "scalar"
// CHECK: scf.if
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: sheaf.apply "scalar"
sheaf.param @k1 : tensor<13x13xf32> init("glorot", [])
sheaf.param @k2 : tensor<13x13xf32> init("glorot", [])
sheaf.param @k3 : tensor<13x13xf32> init("glorot", [])
func.func @keys(%c: i1, %x: tensor<13xf32>, %n: f64) -> (tensor<13xf32>, tensor<13xf32>) {
  %k1 = sheaf.param_ref @k1 : tensor<13x13xf32>
  %k2 = sheaf.param_ref @k2 : tensor<13x13xf32>
  %k3 = sheaf.param_ref @k3 : tensor<13x13xf32>
  %y = sheaf.apply "matmul"(%x, %k1) {} : (tensor<13xf32>, tensor<13x13xf32>) -> tensor<13xf32>
  %a = scf.if %c -> tensor<13xf32> {
    %s = sheaf.apply "scalar"(%n) {} : (f64) -> tensor<f32>
    %p = sheaf.apply "mul"(%y, %s) {} : (tensor<13xf32>, tensor<f32>) -> tensor<13xf32>
    scf.yield %p : tensor<13xf32>
  } else {
    scf.yield %y : tensor<13xf32>
  }
  %b = scf.if %c -> tensor<13xf32> {
    %p = sheaf.apply "matmul"(%x, %k2) {} : (tensor<13xf32>, tensor<13x13xf32>) -> tensor<13xf32>
    scf.yield %p : tensor<13xf32>
  } else {
    %p = sheaf.apply "matmul"(%x, %k3) {} : (tensor<13xf32>, tensor<13x13xf32>) -> tensor<13xf32>
    scf.yield %p : tensor<13xf32>
  }
  %s = sheaf.apply "scalar"(%n) {} : (f64) -> tensor<f32>
  %e = sheaf.apply "sub"(%b, %s) {} : (tensor<13xf32>, tensor<f32>) -> tensor<13xf32>
  return %a, %e : tensor<13xf32>, tensor<13xf32>
}

// Two products, each of a loop of its own, and code of two arms that takes the same tensor beside one
// of them: before the branches it would be read by both. The first branch loses its code.
// CHECK-LABEL: func.func @hosts
// CHECK-COUNT-2: sheaf.fold
// CHECK: sheaf.apply "matmul"
// CHECK: sheaf.apply "matmul"
// CHECK: sheaf.apply "mul"
// CHECK: scf.if
// CHECK-NOT: "mul"
// CHECK: else
// CHECK: scf.if
// CHECK: sheaf.apply "mul"
// CHECK: else
sheaf.param @o0 : tensor<14x14xf32> init("glorot", [])
sheaf.param @o1 : tensor<14x14xf32> init("glorot", [])
sheaf.param @o2 : tensor<14x14xf32> init("glorot", [])
func.func @hosts(%c: i1, %x: tensor<14xf32>, %is: !sheaf.list<i64>) -> (tensor<14xf32>, tensor<14xf32>) {
  %o0 = sheaf.param_ref @o0 : tensor<14x14xf32>
  %o1 = sheaf.param_ref @o1 : tensor<14x14xf32>
  %o2 = sheaf.param_ref @o2 : tensor<14x14xf32>
  %v = sheaf.apply "matmul"(%x, %o0) {} : (tensor<14xf32>, tensor<14x14xf32>) -> tensor<14xf32>
  %f = sheaf.fold %v, %is : (tensor<14xf32>, !sheaf.list<i64>) -> tensor<14xf32> {
  ^bb0(%s: tensor<14xf32>, %i: i64):
    %n = sheaf.apply "sigmoid"(%s) {} : (tensor<14xf32>) -> tensor<14xf32>
    sheaf.yield %n : tensor<14xf32>
  }
  %g = sheaf.fold %v, %is : (tensor<14xf32>, !sheaf.list<i64>) -> tensor<14xf32> {
  ^bb0(%s: tensor<14xf32>, %i: i64):
    %n = sheaf.apply "relu"(%s) {} : (tensor<14xf32>) -> tensor<14xf32>
    sheaf.yield %n : tensor<14xf32>
  }
  %p = sheaf.apply "matmul"(%f, %o1) {} : (tensor<14xf32>, tensor<14x14xf32>) -> tensor<14xf32>
  %q = sheaf.apply "matmul"(%g, %o2) {} : (tensor<14xf32>, tensor<14x14xf32>) -> tensor<14xf32>
  %a = scf.if %c -> tensor<14xf32> {
    %m = sheaf.apply "mul"(%p, %v) {} : (tensor<14xf32>, tensor<14xf32>) -> tensor<14xf32>
    scf.yield %m : tensor<14xf32>
  } else {
    scf.yield %p : tensor<14xf32>
  }
  %b = scf.if %c -> tensor<14xf32> {
    %m = sheaf.apply "mul"(%q, %v) {} : (tensor<14xf32>, tensor<14xf32>) -> tensor<14xf32>
    scf.yield %m : tensor<14xf32>
  } else {
    scf.yield %q : tensor<14xf32>
  }
  return %a, %b : tensor<14xf32>, tensor<14xf32>
}

// What follows two branches is one block. If the first recorded nothing, its part of that would
// begin earlier than that of the second: two blocks.
// CHECK-LABEL: func.func @levels
// CHECK: scf.if
// CHECK-NEXT: sheaf.apply "abs"
sheaf.param @l1 : tensor<15x15xf32> init("glorot", [])
sheaf.param @l2 : tensor<15x15xf32> init("glorot", [])
sheaf.param @l3 : tensor<15x15xf32> init("glorot", [])
func.func @levels(%c: i1, %x: tensor<15xf32>) -> tensor<15xf32> {
  %l1 = sheaf.param_ref @l1 : tensor<15x15xf32>
  %l2 = sheaf.param_ref @l2 : tensor<15x15xf32>
  %l3 = sheaf.param_ref @l3 : tensor<15x15xf32>
  %p = sheaf.apply "matmul"(%x, %l1) {} : (tensor<15xf32>, tensor<15x15xf32>) -> tensor<15xf32>
  %a = scf.if %c -> tensor<15xf32> {
    %m = sheaf.apply "abs"(%p) {} : (tensor<15xf32>) -> tensor<15xf32>
    scf.yield %m : tensor<15xf32>
  } else {
    scf.yield %p : tensor<15xf32>
  }
  %b = scf.if %c -> tensor<15xf32> {
    %m = sheaf.apply "matmul"(%p, %l2) {} : (tensor<15xf32>, tensor<15x15xf32>) -> tensor<15xf32>
    scf.yield %m : tensor<15xf32>
  } else {
    scf.yield %p : tensor<15xf32>
  }
  %q = sheaf.apply "matmul"(%a, %l3) {} : (tensor<15xf32>, tensor<15x15xf32>) -> tensor<15xf32>
  %r = sheaf.apply "add"(%q, %b) {} : (tensor<15xf32>, tensor<15xf32>) -> tensor<15xf32>
  return %r : tensor<15xf32>
}
}
