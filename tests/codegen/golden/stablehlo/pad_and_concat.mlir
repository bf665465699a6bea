// concat(pad(v, [1, 2], value=7), v, axis=0)
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<19xf32>) {
    %1 = stablehlo.constant dense<0x40E00000> : tensor<f32>
    %2 = stablehlo.pad %arg0, %1, low = [1], high = [2], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<11xf32>
    %3 = stablehlo.concatenate %2, %arg0, dim = 0 : (tensor<11xf32>, tensor<8xf32>) -> tensor<19xf32>
    "func.return"(%3) : (tensor<19xf32>) -> ()
  }
}
