// RUN: sheaf-opt --hoist-invariants=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --hoist-invariants=remarks=1 %s 2>&1 | FileCheck %s --check-prefix=STAYS
// RUN: sheaf-opt --hoist-invariants=without=hoist-invariants %s | FileCheck %s --check-prefix=OFF

// STAYS-DAG: matmul: the same at every step of the loop, but stays: a branch is around it, and it is more than the rest of the loop
// STAYS-DAG: exp: the same at every step of the loop, but stays: it would be rounded where it is stored
// STAYS-DAG: matmul: the same at every step of the loop, but stays: a sum of the loop goes on from it

// OFF-LABEL: func.func @moves
// OFF: sheaf.map
// OFF: "matmul"(%arg1,

sheaf.param @table : tensor<50x40xf32> init("normal", [1.0])
sheaf.param @w : tensor<40x40xf32> init("glorot", [])
sheaf.param @wide : tensor<40x1024xf32> init("glorot", [])
sheaf.param @narrow : tensor<40x2xf32> init("glorot", [])
sheaf.data @Side [#sheaf.ctor<"Left", [], []>, #sheaf.ctor<"Right", [], []>]

// CHECK: remark: matmul, tanh: the same at every step of the loop, so it runs once, before it

// A product and what is made of it. A view is made where it is taken.
// CHECK-LABEL: func.func @moves
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%arg1,
// CHECK: %[[T:.*]] = sheaf.apply "tanh"(%[[P]])
// CHECK: sheaf.map
// CHECK: %[[V:.*]] = sheaf.apply "reshape"(%[[T]])
// CHECK: sheaf.apply "add"(%{{.*}}, %[[V]])
func.func @moves(%xs: !sheaf.list<tensor<1x40xf32>>, %c: tensor<40xf32>) -> !sheaf.list<tensor<1x40xf32>> {
  %r = sheaf.map %xs : (!sheaf.list<tensor<1x40xf32>>) -> !sheaf.list<tensor<1x40xf32>> {
  ^bb0(%x: tensor<1x40xf32>):
    %w = sheaf.param_ref @w : tensor<40x40xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %t = sheaf.apply "tanh"(%p) {} : (tensor<40xf32>) -> tensor<40xf32>
    %v = sheaf.apply "reshape"(%t) {} : (tensor<40xf32>) -> tensor<1x40xf32>
    %y = sheaf.apply "add"(%x, %v) {} : (tensor<1x40xf32>, tensor<1x40xf32>) -> tensor<1x40xf32>
    sheaf.yield %y : tensor<1x40xf32>
  }
  return %r : !sheaf.list<tensor<1x40xf32>>
}

// Much of it runs only if there are elements; of a list that has some, in any case.
// CHECK-LABEL: func.func @much
// CHECK: %[[N:.*]] = sheaf.len %arg0
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N]]
// CHECK: %[[ONE:.*]] = scf.if %[[ANY]] -> (tensor<?x1024xf32>) {
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%arg1,
// CHECK: scf.yield %[[P]]
// CHECK: } else {
// CHECK: %[[NONE:.*]] = sheaf.apply "full"
// CHECK: scf.yield %[[NONE]]
// CHECK: sheaf.map
// CHECK: "mul"(%[[ONE]],
// CHECK-NOT: scf.if
// CHECK: "matmul"(%arg1,
// CHECK: sheaf.map
// CHECK-NOT: "matmul"
// CHECK: return
func.func @much(%xs: !sheaf.list<tensor<f32>>, %m: tensor<?x40xf32>, %one: tensor<f32>) -> (!sheaf.list<tensor<?x1024xf32>>, !sheaf.list<tensor<?x1024xf32>>) {
  %w = sheaf.param_ref @wide : tensor<40x1024xf32>
  %r = sheaf.map %xs : (!sheaf.list<tensor<f32>>) -> !sheaf.list<tensor<?x1024xf32>> {
  ^bb0(%x: tensor<f32>):
    %p = sheaf.apply "matmul"(%m, %w) {} : (tensor<?x40xf32>, tensor<40x1024xf32>) -> tensor<?x1024xf32>
    %y = sheaf.apply "mul"(%p, %x) {} : (tensor<?x1024xf32>, tensor<f32>) -> tensor<?x1024xf32>
    sheaf.yield %y : tensor<?x1024xf32>
  }
  %some = sheaf.cons %one, %xs : tensor<f32>, !sheaf.list<tensor<f32>>
  %q = sheaf.map %some : (!sheaf.list<tensor<f32>>) -> !sheaf.list<tensor<?x1024xf32>> {
  ^bb0(%x: tensor<f32>):
    %p = sheaf.apply "matmul"(%m, %w) {} : (tensor<?x40xf32>, tensor<40x1024xf32>) -> tensor<?x1024xf32>
    %y = sheaf.apply "mul"(%p, %x) {} : (tensor<?x1024xf32>, tensor<f32>) -> tensor<?x1024xf32>
    sheaf.yield %y : tensor<?x1024xf32>
  }
  return %r, %q : !sheaf.list<tensor<?x1024xf32>>, !sheaf.list<tensor<?x1024xf32>>
}

// From both loops what neither changes, with a loop that neither changes; before the inner one what
// it takes of the outer one.
// CHECK-LABEL: func.func @nested
// CHECK: "matmul"(%arg1,
// CHECK: sheaf.fold %arg1, %arg0
// CHECK: sheaf.yield
// CHECK: scf.if
// CHECK-NEXT: "stack"(%arg0)
// CHECK: sheaf.map
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<40xf32>):
// CHECK: "matmul"(%[[X]],
// CHECK: sheaf.map
// CHECK-NOT: "matmul"
// CHECK: "mul"
func.func @nested(%xs: !sheaf.list<tensor<40xf32>>, %c: tensor<40xf32>) -> !sheaf.list<!sheaf.list<tensor<?x40xf32>>> {
  %w = sheaf.param_ref @w : tensor<40x40xf32>
  %r = sheaf.map %xs : (!sheaf.list<tensor<40xf32>>) -> !sheaf.list<!sheaf.list<tensor<?x40xf32>>> {
  ^bb0(%x: tensor<40xf32>):
    %i = sheaf.map %xs : (!sheaf.list<tensor<40xf32>>) -> !sheaf.list<tensor<?x40xf32>> {
    ^bb0(%y: tensor<40xf32>):
      %s = sheaf.apply "stack"(%xs) {axis = 0 : i64} : (!sheaf.list<tensor<40xf32>>) -> tensor<?x40xf32>
      %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
      %q = sheaf.apply "matmul"(%x, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
      %f = sheaf.fold %c, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
      ^bb0(%t: tensor<40xf32>, %z: tensor<40xf32>):
        %u = sheaf.apply "mul"(%t, %z) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
        sheaf.yield %u : tensor<40xf32>
      }
      %1 = sheaf.apply "mul"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      %2 = sheaf.apply "mul"(%1, %f) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      %3 = sheaf.apply "mul"(%2, %y) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      %4 = sheaf.apply "mul"(%s, %3) {} : (tensor<?x40xf32>, tensor<40xf32>) -> tensor<?x40xf32>
      sheaf.yield %4 : tensor<?x40xf32>
    }
    sheaf.yield %i : !sheaf.list<tensor<?x40xf32>>
  }
  return %r : !sheaf.list<!sheaf.list<tensor<?x40xf32>>>
}

// Out of branches where each does as much in any case; where one does nothing it stays.
// CHECK-LABEL: func.func @arms
// CHECK: %[[P:.*]] = sheaf.apply "matmul"(%arg1,
// CHECK: sheaf.fold
// CHECK: sheaf.match
// CHECK: "mul"(%{{.*}}, %[[P]])
// CHECK: sheaf.fold
// CHECK: sheaf.match
// CHECK: "matmul"(%arg1,
// CHECK: return
func.func @arms(%sides: !sheaf.list<!sheaf.data<@Side>>, %c: tensor<40xf32>) -> tensor<40xf32> {
  %w = sheaf.param_ref @w : tensor<40x40xf32>
  %r = sheaf.fold %c, %sides : (tensor<40xf32>, !sheaf.list<!sheaf.data<@Side>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %side: !sheaf.data<@Side>):
    %q = sheaf.apply "matmul"(%s, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %n = sheaf.match %side [0, 1] : (!sheaf.data<@Side>) -> tensor<40xf32> {
      %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
      %m = sheaf.apply "mul"(%q, %p) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      sheaf.yield %m : tensor<40xf32>
    }, {
      sheaf.yield %q : tensor<40xf32>
    }
    sheaf.yield %n : tensor<40xf32>
  }
  %q = sheaf.fold %r, %sides : (tensor<40xf32>, !sheaf.list<!sheaf.data<@Side>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %side: !sheaf.data<@Side>):
    %n = sheaf.match %side [0, 1] : (!sheaf.data<@Side>) -> tensor<40xf32> {
      %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
      %m = sheaf.apply "mul"(%s, %p) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      sheaf.yield %m : tensor<40xf32>
    }, {
      sheaf.yield %s : tensor<40xf32>
    }
    sheaf.yield %n : tensor<40xf32>
  }
  return %q : tensor<40xf32>
}

// What draws; extents that a check is about; too little; what is larger than what it is made of;
// what is rounded when it is stored; and the second half of a chain.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: "matmul"
// CHECK: sheaf.map
// CHECK: "random"
// CHECK: sheaf.check
// CHECK: "add"(%arg1, %arg2)
// CHECK: "exp"(%arg3)
// CHECK: "mul"(%{{.*}}, %{{.*}}) {} : (tensor<40x1xf32>, tensor<1x40xf32>) -> tensor<40x40xf32>
// CHECK: "exp"(%arg4)
// CHECK: "matmul"(%{{.*}}, %{{.*}}) {} :
// CHECK: "matmul"(%arg3,
// CHECK: return
func.func @stays(%xs: !sheaf.list<tensor<40xf32>>, %n: tensor<?x512xf32>, %m: tensor<?x512xf32>, %c: tensor<40xf32>, %half: tensor<4096xbf16>, %key: i64, %same: i1) -> !sheaf.list<tuple<tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>>> {
  %w = sheaf.param_ref @w : tensor<40x40xf32>
  %r = sheaf.map %xs : (!sheaf.list<tensor<40xf32>>) -> !sheaf.list<tuple<tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>>> {
  ^bb0(%x: tensor<40xf32>):
    %d = sheaf.apply "random"(%key) {} : (i64) -> tensor<512xf32>
    sheaf.check %same, "other extents"
    %s = sheaf.apply "add"(%n, %m) {} : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %e = sheaf.apply "exp"(%c) {} : (tensor<40xf32>) -> tensor<40xf32>
    %l = sheaf.apply "mul"(%e, %x) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    %1 = sheaf.apply "reshape"(%c) {} : (tensor<40xf32>) -> tensor<40x1xf32>
    %2 = sheaf.apply "reshape"(%c) {} : (tensor<40xf32>) -> tensor<1x40xf32>
    %o = sheaf.apply "mul"(%1, %2) {} : (tensor<40x1xf32>, tensor<1x40xf32>) -> tensor<40x40xf32>
    %h = sheaf.apply "exp"(%half) {} : (tensor<4096xbf16>) -> tensor<4096xbf16>
    %p = sheaf.apply "matmul"(%x, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %q = sheaf.apply "matmul"(%c, %w) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %a = sheaf.apply "add"(%p, %q) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    %t = sheaf.tuple(%d, %s, %l, %o, %h, %a) : (tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>) -> tuple<tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>>
    sheaf.yield %t : tuple<tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>>
  }
  return %r : !sheaf.list<tuple<tensor<512xf32>, tensor<?x512xf32>, tensor<40xf32>, tensor<40x40xf32>, tensor<4096xbf16>, tensor<40xf32>>>
}
